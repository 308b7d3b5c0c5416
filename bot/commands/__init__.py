"""What the commands do, one group of related ones per file; ``table.py`` names them all."""
