"""The C++ trainer; of Python it has only its tests."""
