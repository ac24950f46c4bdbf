"""Pictures of the site that the command line does not draw: `python -m pictures.circuit FOLDER`."""
