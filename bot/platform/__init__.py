"""The platform as the house sees it: connected accounts, and one outgoing queue for each."""
