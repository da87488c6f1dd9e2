package ui

import (
	"strings"
	"testing"
	"time"

	"dropbell/domain/reminder"
)

// Before its own curve has begun a chart draws the earlier curves, and a chart of shares draws each curve in percent of its whole.
func TestTimeChartOfEarlierCurves(t *testing.T) {
	opens := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	past := Curve{Name: "Before", Origin: opens, Of: 400, Points: []reminder.Growth{{At: opens}, {At: opens.Add(10 * time.Second), Booked: 300}}}
	p := TimeChart{Own: Curve{Name: "Now", Origin: opens, Of: 100}, Earlier: []Curve{past}, Zone: time.UTC, Shares: true}
	if !p.empty() {
		t.Error("without Ahead an own curve is needed")
	}
	p.Ahead = true
	if p.empty() || p.top() != 75 || p.spans() != nil {
		t.Errorf("empty %v, up to %v, parts %v", p.empty(), p.top(), p.spans())
	}
	lines, area := p.paths()
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "M0.0 ") || lines[1] != "" || area != "" {
		t.Errorf("%q, the area %q", lines, area)
	}
	if line := p.line(past); line.Points[1] != [2]float64{10, 75} {
		t.Errorf("%v", line.Points)
	}
	p.Shares = false
	if p.top() != 300 {
		t.Errorf("numbers up to %v", p.top())
	}
}
