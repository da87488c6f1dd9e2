package network

import (
	"io"
	"net"
	"testing"
	"time"

	"dropbell/musttest"
)

// echo returns the address of a server that returns what it reads.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	musttest.OK(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	return l.Addr().String()
}

// TestProxyDelaysEachWay: an answer comes after twice the delay, data that is on its way together
// is delayed once, and nothing is lost or reordered.
func TestProxyDelaysEachWay(t *testing.T) {
	p, address, err := Through("redis://user@" + echo(t) + "/0")
	musttest.OK(t, err)
	defer p.Close()
	if address != "redis://user@"+p.listener.Addr().String()+"/0" {
		t.Errorf("the address is %s", address)
	}
	c, err := net.Dial("tcp", p.listener.Addr().String())
	musttest.OK(t, err)
	defer c.Close()
	trip := func(data []byte) time.Duration {
		t.Helper()
		begin, got := time.Now(), make([]byte, len(data))
		go func() { _, _ = c.Write(data) }()
		if _, err := io.ReadFull(c, got); err != nil || string(got) != string(data) {
			t.Fatalf("%d bytes came back otherwise: %v", len(data), err)
		}
		return time.Since(begin)
	}
	trip([]byte("without a delay"))
	const delay = 50 * time.Millisecond
	p.SetDelay(delay)
	if took := trip([]byte("x")); took < 2*delay {
		t.Errorf("a round trip takes %s", took)
	}
	many := make([]byte, 4<<20)
	for i := range many {
		many[i] = byte(i * 7 >> 3)
	}
	if took := trip(many); took < 2*delay || took > 20*delay { // 64 parcels and more, one after the other, would take 128 delays
		t.Errorf("4 MiB take %s", took)
	}
	p.SetDelay(0)
	musttest.OK(t, c.Close())
}

// TestProxyEndsWithItsServer: a connection to a server that is away ends at once.
func TestProxyEndsWithItsServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	musttest.OK(t, err)
	p, err := NewProxy(l.Addr().String())
	musttest.OK(t, err)
	defer p.Close()
	_ = l.Close()
	c, err := net.Dial("tcp", p.listener.Addr().String())
	musttest.OK(t, err)
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a connection to no server stays open")
	}
}

// TestInSequence: round trips at the same time count once, whatever their number.
func TestInSequence(t *testing.T) {
	at := func(from, to int) Wait { return Wait{time.Unix(int64(from), 0), time.Unix(int64(to), 0)} }
	for want, waits := range map[int][]Wait{
		0: nil,
		1: {at(1, 4), at(2, 3), at(2, 5)},
		2: {at(4, 6), at(1, 4), at(1, 7), at(3, 5)},
		3: {at(1, 2), at(3, 4), at(2, 5), at(5, 6)},
	} {
		if n := InSequence(waits); n != want {
			t.Errorf("%d in sequence, want %d", n, want)
		}
	}
}

// TestProxyRecordsRoundTrips: a client that sends two parcels and then waits makes one round trip.
func TestProxyRecordsRoundTrips(t *testing.T) {
	p, err := NewProxy(echo(t))
	musttest.OK(t, err)
	defer p.Close()
	p.SetDelay(20 * time.Millisecond)
	c, err := net.Dial("tcp", p.listener.Addr().String())
	musttest.OK(t, err)
	defer c.Close()
	send := func(parcels ...string) {
		t.Helper()
		size := 0
		for _, data := range parcels {
			if _, err := c.Write([]byte(data)); err != nil {
				t.Fatal(err)
			}
			size += len(data)
		}
		if _, err := io.ReadFull(c, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	send("not recorded")
	p.Record()
	send("one", "two")
	send("three")
	if n := InSequence(p.Recorded()); n != 2 {
		t.Errorf("%d round trips, want 2", n)
	}
	send("not recorded")
	if waits := p.Recorded(); len(waits) != 0 {
		t.Errorf("%v", waits)
	}
}
