"""What each page shows, and the handlers and files beside the pages."""
