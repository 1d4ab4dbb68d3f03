"""History for another program to keep: chunks of whole revisions, framed, compressed and checksummed."""
