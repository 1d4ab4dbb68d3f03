"""What gpu-usage-audit recorded, read as it stands in its databases and made into ticks of ours."""
