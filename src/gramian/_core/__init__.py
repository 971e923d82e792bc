"""What every room stands on: arrays of any library, threads, checks of arguments, memory, warnings."""
