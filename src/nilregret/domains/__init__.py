"""What may be played: arms, boxes and named parameters."""
