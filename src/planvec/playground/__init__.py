"""The playground: plan arithmetic to try, in a browser. It needs the extra `play`."""
