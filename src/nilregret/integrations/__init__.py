"""Where other people's tools meet this library: each module needs the package that it is named after."""
