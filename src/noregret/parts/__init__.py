"""The parts that fill a policy's slots: each answers one question and names the theorem it comes from."""
