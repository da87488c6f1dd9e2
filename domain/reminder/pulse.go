package reminder

import (
	"time"

	"dropbell/domain/delivery"
)

// A pulse covers the last four minutes.
const (
	PulseStep  = 5 * time.Second
	PulseSteps = 48
)

// A Pulse is how many messages of one drop were sent in the last minutes, per channel and step of
// [PulseStep]. The zero Pulse belongs to a drop of which nothing is known. A Pulse is a value:
// methods that change it return another.
type Pulse struct {
	at    time.Time // up to when it is known
	last  int64     // number of the step that at lies in
	steps [delivery.Channels][PulseSteps]float64
}

// A Span is a number of messages that went out between two instants.
type Span struct {
	Channel  delivery.Channel
	From, To time.Time
	Sent     int64
}

func stepOf(t time.Time) int64 { return t.UnixNano() / int64(PulseStep) }

// At is the instant up to which the pulse is known.
func (p Pulse) At() time.Time { return p.at }

// Until returns the pulse up to now, without further messages.
func (p Pulse) Until(now time.Time) Pulse {
	if !now.After(p.at) {
		return p
	}
	step := stepOf(now)
	if gone := min(step-p.last, PulseSteps); gone > 0 {
		for c := range p.steps {
			copy(p.steps[c][:], p.steps[c][gone:])
			clear(p.steps[c][PulseSteps-gone:])
		}
	}
	p.at, p.last = now, step
	return p
}

// Plus returns the pulse with the messages of s, spread evenly over the time of s. Messages
// before the beginning or after the end of the pulse are left out.
func (p Pulse) Plus(s Span) Pulse {
	if s.Sent <= 0 || !s.Channel.Valid() {
		return p
	}
	if !s.To.After(s.From) {
		p.add(s.Channel, stepOf(s.To), float64(s.Sent))
		return p
	}
	whole := s.To.Sub(s.From).Seconds()
	for step := max(stepOf(s.From), p.last-PulseSteps+1); step <= min(stepOf(s.To), p.last); step++ {
		begin, end := time.Unix(0, step*int64(PulseStep)), time.Unix(0, (step+1)*int64(PulseStep))
		if s.From.After(begin) {
			begin = s.From
		}
		if s.To.Before(end) {
			end = s.To
		}
		p.add(s.Channel, step, float64(s.Sent)*end.Sub(begin).Seconds()/whole)
	}
	return p
}

func (p *Pulse) add(c delivery.Channel, step int64, n float64) {
	if i := PulseSteps - 1 - (p.last - step); i >= 0 && i < PulseSteps {
		p.steps[c][i] += n
	}
}

// PerSecond returns the messages per second of each step, oldest first. The last step is not over
// yet, but is divided by a whole [PulseStep] too.
func (p Pulse) PerSecond(c delivery.Channel) [PulseSteps]float64 {
	out := p.steps[c]
	for i := range out {
		out[i] /= PulseStep.Seconds()
	}
	return out
}

// Now returns the messages per second over the last [PulseStep].
func (p Pulse) Now(c delivery.Channel) float64 {
	begun := time.Duration(p.at.UnixNano() % int64(PulseStep))
	rest := 1 - float64(begun)/float64(PulseStep)
	return (p.steps[c][PulseSteps-1] + rest*p.steps[c][PulseSteps-2]) / PulseStep.Seconds()
}
