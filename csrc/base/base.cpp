// Placeholder translation unit until the folder has its own.
