"""Back-ends for serving engines: each module speaks the protocol of one, and is built on the public names of maskwright."""
