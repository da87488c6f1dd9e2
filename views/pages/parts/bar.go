package parts

import (
	"fmt"
	"strings"
)

// A Piece is one colour of a bar.
type Piece struct {
	Class string // as in the style sheet, such as "bar-sent"
	N     int64
}

// A Span is where a piece lies, in thousandths of the bar's length.
type Span struct{ Class, X, Width string }

// Least is the length at which a piece is still seen.
const Least = 8.0

// spans lays the pieces side by side; the remaining part of total stays empty.
func spans(list []Piece, total int64) []Span {
	var widths []float64
	sum := 0.0
	for _, p := range list {
		w := 0.0
		if p.N > 0 && total > 0 {
			w = max(Least, 1000*float64(p.N)/float64(total))
		}
		widths = append(widths, w)
		sum += w
	}
	shrink := 1.0
	if sum > 1000 { // the least widths made it too long
		shrink = 1000 / sum
	}
	var out []Span
	at := 0.0
	for i, w := range widths {
		if w > 0 {
			out = append(out, Span{list[i].Class, Unit(at * shrink), Unit(w * shrink)})
		}
		at += w
	}
	return out
}

// Unit writes a coordinate.
func Unit(f float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0")
}
