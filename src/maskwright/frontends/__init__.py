"""Front-ends: text or objects in, the intermediate representation out."""
