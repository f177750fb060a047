"""Tools that read and change files of the project.

`text_files.file_tools` returns all of them.
"""
