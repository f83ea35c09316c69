"""What can be measured: one file each, whose `rows` measures as they are taken."""
