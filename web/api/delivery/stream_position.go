package delivery

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/inbox"
)

// position is a client's position in its messages. Its text is the event id. The position holds the
// latest instant and the messages around it that the client has, so that any process can continue
// from there without having served the client before.
type position struct {
	at     time.Time
	recent []placed
}

type placed struct {
	id string
	at time.Time
}

const maxRecent = 64

// add returns false if the client has the message.
func (p *position) add(it inbox.Message) bool {
	for _, r := range p.recent {
		if r.id == it.ID {
			return false
		}
	}
	if it.At.After(p.at) {
		p.at = it.At
	}
	p.recent = append(p.recent, placed{it.ID, it.At})
	p.recent = slices.DeleteFunc(p.recent, func(r placed) bool { return r.at.Before(p.at.Add(-resumeWindow)) })
	if len(p.recent) > maxRecent {
		p.recent = p.recent[len(p.recent)-maxRecent:]
	}
	return true
}

// String returns the event id.
func (p *position) String() string { return string(p.append(nil)) }

func (p *position) append(b []byte) []byte {
	b = strconv.AppendInt(b, p.at.UnixMicro(), 10)
	for _, r := range p.recent {
		b = append(b, ',')
		b = strconv.AppendInt(b, p.at.Sub(r.at).Microseconds(), 10)
		b = append(b, '=')
		b = append(b, url.QueryEscape(r.id)...)
	}
	return b
}

// parsePosition returns the zero position for any text that position has not written.
func parsePosition(s string) position {
	first, rest, _ := strings.Cut(s, ",")
	micros, err := strconv.ParseInt(first, 10, 64)
	// Instants that a database can hold, 1970 to 9000.
	if err != nil || micros <= 0 || micros > 221845392000000000 || len(s) > 8<<10 {
		return position{}
	}
	p := position{at: time.UnixMicro(micros).UTC()}
	for part := range strings.SplitSeq(rest, ",") {
		age, escaped, ok := strings.Cut(part, "=")
		n, err := strconv.ParseInt(age, 10, 64)
		id, bad := url.QueryUnescape(escaped)
		if ok && err == nil && bad == nil && n >= 0 && n <= resumeWindow.Microseconds() && len(p.recent) < maxRecent {
			p.recent = append(p.recent, placed{id, p.at.Add(-time.Duration(n) * time.Microsecond)})
		}
	}
	return p
}
