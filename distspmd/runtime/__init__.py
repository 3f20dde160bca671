"""What runs around and inside a lowered program: tools, launch, and the C++ headers."""
