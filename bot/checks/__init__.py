"""What the doctor looks at: each check returns findings and prints nothing."""
