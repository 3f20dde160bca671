"""What is kept between runs, and what lies in files for a moment: folders that nobody else writes.

``folders`` says where they are and that they are the user's own, ``entries`` keeps what was built,
with checksums, ``locks`` lets one process of many do a piece of work, and ``scratch`` has folders
that are removed, by the next start if their process was killed.
"""
