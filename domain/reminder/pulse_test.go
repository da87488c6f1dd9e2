package reminder

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/delivery"
)

var noon = time.Date(2026, 11, 20, 12, 0, 2, 0, time.UTC)

func sum(p Pulse, c delivery.Channel) (n float64) {
	for _, perSecond := range p.PerSecond(c) {
		n += perSecond * PulseStep.Seconds()
	}
	return n
}

// Every part within the pulse is counted once, wherever its steps begin.
func TestPulseCountsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, want := Pulse{}.Until(noon), 0.0
		for range rapid.IntRange(1, 20).Draw(t, "spans") {
			back := time.Duration(rapid.Int64Range(0, int64(200*time.Second)).Draw(t, "back"))
			long := time.Duration(rapid.Int64Range(0, int64(30*time.Second)).Draw(t, "long"))
			n := rapid.Int64Range(0, 10_000).Draw(t, "sent")
			to := noon.Add(-back)
			p = p.Plus(Span{Channel: delivery.SMS, From: to.Add(-long), To: to, Sent: n})
			want += float64(n)
		}
		if got := sum(p, delivery.SMS); math.Abs(got-want) > 1e-6*(1+want) {
			t.Fatalf("%v messages, want %v", got, want)
		}
		if other := sum(p, delivery.App); other != 0 {
			t.Fatalf("another channel has %v", other)
		}
		if gone := sum(p.Until(noon.Add(PulseSteps*PulseStep)), delivery.SMS); gone != 0 {
			t.Fatalf("after its time there are still %v", gone)
		}
	})
}

func TestPulseForgetsStepByStep(t *testing.T) {
	p := Pulse{}.Until(noon).Plus(Span{Channel: delivery.App, From: noon.Add(-time.Second), To: noon, Sent: 100})
	if got := p.PerSecond(delivery.App)[PulseSteps-1]; got != 20 {
		t.Errorf("the last step has %v/s, want 20", got)
	}
	if got := p.Now(delivery.App); got != 20 {
		t.Errorf("now %v/s, want 20", got)
	}
	p = p.Until(noon.Add(PulseStep))
	if got := p.PerSecond(delivery.App); got[PulseSteps-1] != 0 || got[PulseSteps-2] != 20 {
		t.Errorf("a step later: %v", got[PulseSteps-2:])
	}
	if got := p.Now(delivery.App); math.Abs(got-12) > 1e-9 { // three fifths of the step before are within five seconds
		t.Errorf("a step later: now %v/s, want 12", got)
	}
	if back := p.Until(noon); back != p {
		t.Error("a pulse went back in time")
	}
	late := p.Plus(Span{Channel: delivery.App, From: noon.Add(-time.Hour), To: noon.Add(-time.Hour), Sent: 1})
	if late != p {
		t.Error("what lies before the pulse was counted")
	}
}
