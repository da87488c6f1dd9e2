package ui

import (
	"slices"
	"testing"
)

// TestTicks: the numbers at the axis enclose 0 and all numbers of the chart but small losses in equal steps, and are few.
func TestTicks(t *testing.T) {
	for _, c := range []struct {
		unit int64
		bars []int64
		want []int64
	}{
		{0, []int64{0, 0}, []int64{1, 0}}, {100, []int64{0}, []int64{100, 0}}, {0, []int64{3}, []int64{3, 2, 1, 0}}, {0, []int64{9, 0}, []int64{10, 5, 0}},
		{0, []int64{213_000}, []int64{300_000, 200_000, 100_000, 0}}, {100, []int64{-600, 1400}, []int64{2000, 1000, 0, -1000}},
		{100, []int64{-4_000, 83_000}, []int64{100_000, 50_000, 0}},
	} {
		p := BarChart{Unit: c.unit}
		for _, n := range c.bars {
			p.Bars = append(p.Bars, ChartBar{N: n})
		}
		got := p.ticks()
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.bars, got, c.want)
		}
		step := got[0] - got[1]
		if len(got) > mostSteps+1 || got[0] < slices.Max(c.bars) || got[len(got)-1] > slices.Min(c.bars)+got[0]/smallLoss || got[len(got)-1] > 0 {
			t.Errorf("%v: %v", c.bars, got)
		}
		for i := range got[1:] {
			if got[i]-got[i+1] != step {
				t.Errorf("%v: %v", c.bars, got)
			}
		}
	}
}

// No two names below a chart meet: long names are fewer, and a narrow screen has two of them.
func TestNamesBelowTheColumns(t *testing.T) {
	for name, want := range map[string][2]int{"5 Nov": {6, 2}, "November 2026": {4, 2}} {
		p := BarChart{Bars: make([]ChartBar, 12)}
		var shown, narrow int
		for i := range p.Bars {
			p.Bars[i].Name = name
		}
		for i := range p.Bars {
			if text, minor := p.name(i); text != "" {
				shown++
				if !minor {
					narrow++
				}
			}
		}
		if got := [2]int{shown, narrow}; got != want {
			t.Errorf("%q: %v names, want %v", name, got, want)
		}
	}
	if !(BarChart{Bars: make([]ChartBar, 3)}).flat() || (BarChart{Bars: []ChartBar{{N: -1}}}).flat() {
		t.Error("a chart is empty if all its numbers are 0")
	}
}
