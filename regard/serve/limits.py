"""Every limit of the server, on one page."""

MIB = 1 << 20

# What is asked
MOST_BODY = 8 * MIB  # bytes of a request
MOST_TEXT = 10_000  # characters
MOST_COLUMNS = 16
MOST_TEXTS = 256  # of one request
MOST_PICTURES = 16
MOST_SEARCHED = 1_000  # texts to search through
MOST_HITS = 100
MOST_ERASED = 2_000  # texts with a word left out, to tell which words carry a hit
MOST_PICTURE = 6_000_000  # characters of a data: URL
MOST_PIXELS = 16_000_000  # of a picture: more would be a bomb
MOST_NAME = 200
MOST_BEAM = 64
MOST_LENGTH = 10_000  # tokens of an output
MOST_HELD = 65_536  # tokens that a search holds at once: beam × length of an output, of as many texts as fit
MOST_ROWS = 1_024  # outputs that a search goes on with at once: beam × texts
MOST_WRITTEN = 1 << 22  # tokens of all that is answered: texts × n_best × length of an output
MOST_CHANGES = 1_000  # tokens erased, heads switched off, tokens given

# Who waits
MOST_WAITING = 64  # requests to one model, beyond which more are sent away at once
MOST_TOGETHER = 256  # texts that are decoded together
RETRY_SECONDS = 1

MOST_AT_WORK = 4  # requests that the event loop reads or answers at a time, so that none waits for a crowd

# How long
HEADER_SECONDS = 5.0  # until a request's headers are there, and between two requests of one connection
BODY_SECONDS = 6.0  # until its body is there, however slowly it comes
ANSWER_SECONDS = 120.0  # until it is answered
SEND_SECONDS = 20.0  # until the next piece of an answer is taken
END_SECONDS = 7.5  # after a signal, for what is being answered
LINGER_SECONDS = 2.0  # in which a refused body is read on, so that the refusal can be read
PIECE = 65_536  # bytes of an answer that are sent at once
MOST_CONNECTIONS = 900  # at once: most systems give a process 1,024 files
MOST_QUEUED = 1024  # connections that the system keeps until they are taken
MOST_REQUESTS = 10_000  # of one connection
MOST_HEADER = 16_384  # bytes
WATCH_SECONDS = 1.0  # between two looks at a folder
