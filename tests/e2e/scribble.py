"""A tenant that fills the page it shares with the broker with rubbish, floods it with
messages of every kind, and comes back whenever it is thrown out.  scribble.py SECONDS"""
import array, mmap, os, random, socket, struct, sys, time

SIZE, HELLO, KINDS = 112, 1, 14


def message(kind, seq, payload):
    device = random.choice([0, 0, 0, 7, 2**31])
    head = struct.pack("<HHIIi", 1, kind, seq, device if kind != HELLO else 0, 0)
    return head + payload.ljust(SIZE - len(head), b"\0")


def join():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(os.environ["SLUICE_RUN_DIR"] + "/broker.sock")
    s.send(message(HELLO, 1, b""))
    _, ancillary, _, _ = s.recvmsg(SIZE, socket.CMSG_SPACE(4))
    fd = array.array("i", ancillary[0][2][:4])[0]
    page = mmap.mmap(fd, os.fstat(fd).st_size)
    os.close(fd)
    s.setblocking(False)
    return s, page


end, seq = time.monotonic() + float(sys.argv[1]), 0
s, page = join()
while time.monotonic() < end:
    rubbish = random.choice([os.urandom(len(page)), b"\xff" * len(page), bytes(len(page))])
    page[:] = rubbish
    seq += 1
    try:
        s.send(message(random.randrange(2, KINDS), seq, os.urandom(96)))
        s.send(message(9, seq, b""))  # WANT
        while True:
            if not s.recv(SIZE):
                s, page = join()
    except BlockingIOError:
        pass
    except OSError:
        s, page = join()
