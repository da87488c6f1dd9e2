package pages

import (
	"fmt"
	"strings"
)

// A piece is one colour of a bar.
type piece struct {
	class string // as in the style sheet, such as "bar-sent"
	n     int64
}

// A span is where a piece lies, in thousandths of the bar's length.
type span struct{ class, x, width string }

// least is the length at which a piece is still seen.
const least = 8.0

// spans lays the pieces side by side; what is left of total stays empty.
func spans(list []piece, total int64) []span {
	var widths []float64
	sum := 0.0
	for _, p := range list {
		w := 0.0
		if p.n > 0 && total > 0 {
			w = max(least, 1000*float64(p.n)/float64(total))
		}
		widths = append(widths, w)
		sum += w
	}
	shrink := 1.0
	if sum > 1000 { // the least widths made it too long
		shrink = 1000 / sum
	}
	var out []span
	at := 0.0
	for i, w := range widths {
		if w > 0 {
			out = append(out, span{list[i].class, unit(at * shrink), unit(w * shrink)})
		}
		at += w
	}
	return out
}

// unit writes a coordinate.
func unit(f float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0")
}
