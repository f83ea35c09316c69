"""The web page that shows models at work, in HTML, CSS and JavaScript without a framework."""
