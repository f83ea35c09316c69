"""The page: models at work in a browser. HTML, CSS and modules of JavaScript, with no framework."""
