"""Starting ranks as a user does, and following them to their end."""
