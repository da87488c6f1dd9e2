package ui

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"dropbell/domain/money"
)

// A BarChart draws a number of consecutive parts of a time as columns, next to the number of the same parts of the time before.
type BarChart struct {
	ID string
	// Label describes the chart in words.
	Label string
	// Text writes a number with its unit, and Axis a number at the axis. Unit is the least distance of two numbers at the axis,
	// 0 = 1.
	Text, Axis func(n int64) string
	Unit       int64
	Bars       []ChartBar
	// Before are the numbers of the time before, one for each of Bars; none = no comparison. Now and Then name the two times.
	Before    []ChartBar
	Now, Then string
}

// A ChartBar is the number of one part of the time, whose name is Name.
type ChartBar struct {
	Name string
	N    int64
}

// mostNames is how many parts have a name below the chart at most, fewNames how many if a name is longer than roomyName characters, and
// mostSteps how many steps the axis has at most.
const (
	mostNames = 6
	fewNames  = 4
	roomyName = 8
	mostSteps = 4
)

// Amounts returns a chart of amounts of the currency.
func Amounts(ctx context.Context, currency string) BarChart {
	l := From(ctx).Locale
	return BarChart{Unit: money.Unit(currency), Text: func(n int64) string { return l.Sum(money.Amount(n), currency) },
		Axis: func(n int64) string { return l.Money(money.Amount(n), currency) }}
}

// smallLoss is the part of the greatest number at the axis up to which losses have no step of their own: their columns fit between the
// line of 0 and the names.
const smallLoss = 20

// ticks returns the numbers at the axis, the greatest first: multiples of 1, 2 or 5 times a power of ten that enclose 0 and all
// numbers of the chart but small losses.
func (p BarChart) ticks() (list []int64) {
	unit := max(1, p.Unit)
	low, high := int64(0), unit
	for _, b := range slices.Concat(p.Bars, p.Before) {
		low, high = min(low, b.N), max(high, b.N)
	}
	for power := unit; ; power *= 10 {
		for _, factor := range []int64{1, 2, 5} {
			step := factor * power
			first, last := (high+step-1)/step, -((step - 1 - low) / step)
			if -low <= first*step/smallLoss {
				last = 0
			}
			if first-last > mostSteps {
				continue
			}
			for i := first; i >= last; i-- {
				list = append(list, i*step)
			}
			return list
		}
	}
}

// A barColumn is the rectangle of a number, in the units of the drawing.
type barColumn struct{ x, y, width, height, class string }

// columns are the columns of a part: of the time before, if the chart has it, and of the time.
func (p BarChart) columns(i int) (list []barColumn) {
	ticks, step := p.ticks(), chartWidth/float64(len(p.Bars))
	top := ticks[0]
	scale := chartHeight / float64(top-ticks[len(ticks)-1])
	column := func(n int64, from, width float64, class string) {
		if n == 0 {
			return
		}
		if n < 0 {
			class += " is-loss"
		}
		width = min(width*step, 60)
		from = float64(i)*step + from*step - width/2
		list = append(list, barColumn{num(from), num(float64(top-max(0, n)) * scale), num(width), num(max(1, float64(max(n, -n))*scale)), class})
	}
	if len(p.Before) > 0 {
		column(p.Before[i].N, .28, .36, "barchart-column is-before")
		column(p.Bars[i].N, .7, .4, "barchart-column")
	} else {
		column(p.Bars[i].N, .5, .7, "barchart-column")
	}
	return list
}

// grid is the path of the lines at the numbers of the axis.
func (p BarChart) grid() (path string) {
	n := len(p.ticks()) - 1
	for i := range n + 1 {
		path += fmt.Sprintf("M0 %.1fH%.0f", chartHeight*float64(i)/float64(n), chartWidth)
	}
	return path
}

// zero is the height of 0 in the drawing.
func (p BarChart) zero() string {
	ticks := p.ticks()
	return fmt.Sprintf("M0 %.1fH%.0f", chartHeight*float64(ticks[0])/float64(ticks[0]-ticks[len(ticks)-1]), chartWidth)
}

// words are the numbers of a part in words: of the time, and of the time before if the chart has it.
func (p BarChart) words(ctx context.Context, i int) []string {
	list := []string{Labelled(ctx, p.Bars[i].Name, p.Text(p.Bars[i].N))}
	if len(p.Before) > 0 {
		list = append(list, Labelled(ctx, p.Before[i].Name, p.Text(p.Before[i].N)))
	}
	return list
}

// name is the name of a part below the chart, "" if there is no room for it; minor says that a narrow screen has no room for it.
func (p BarChart) name(i int) (name string, minor bool) {
	n := len(p.Bars)
	long := slices.ContainsFunc(p.Bars, func(b ChartBar) bool { return utf8.RuneCountInString(b.Name) > roomyName })
	names := mostNames
	if long {
		names = fewNames
	}
	every := (n + names - 1) / names
	if (n-1-i)%every != 0 {
		return "", false
	}
	at := (n - 1 - i) / every // 0 is the name at the right edge, which takes the room of the name at 2
	if long {
		return p.Bars[i].Name, n > 3 && at%3 != 0
	}
	return p.Bars[i].Name, n > 3 && (at%2 == 1 || at == 2)
}

// flat reports whether there is no number to draw.
func (p BarChart) flat() bool {
	return !slices.ContainsFunc(slices.Concat(p.Bars, p.Before), func(b ChartBar) bool { return b.N != 0 })
}

// loses reports whether a number is below 0.
func (p BarChart) loses() bool {
	return slices.ContainsFunc(slices.Concat(p.Bars, p.Before), func(b ChartBar) bool { return b.N < 0 })
}
