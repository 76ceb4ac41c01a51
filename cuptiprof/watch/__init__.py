"""A session that runs, as numbers once a second: made in its process, and handed to whoever watches."""
