"""The command line. Modules add commands; `command_line` parses and runs them."""
