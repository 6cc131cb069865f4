"""The files beside the Python: what in launch scripts, configuration, images and requirements is for CUDA alone.

Nothing in them is edited. What reaches a converted place is mapped there at run time, and what does not is a decision
of whoever runs the program on which machine: it is reported with what each vendor has in its place.
"""
