"""Pictures of results, as SVG or PNG. One file a kind of picture."""
