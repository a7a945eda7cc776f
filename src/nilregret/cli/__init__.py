"""Commands that read and change studies, for people, shell scripts and programs in other languages."""
