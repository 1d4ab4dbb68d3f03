"""The inventory as Ansible itself reads it: which hosts there are, and how each one is reached."""
