"""What CPython runs inside of a compiled program: functions that the user has marked."""
