package campaign

import (
	"context"
	"time"

	"dropbell/domain/staff"
)

// A Point is what the recipients of a campaign did in the span that begins at At. Each recipient
// counts once for each number, with the first instant.
type Point struct {
	At   time.Time
	Sent int64
	// Delivered is how many of the messages sent in the span the provider has reported as delivered.
	Delivered int64
	Opened    int64
	Claimed   int64
	// Earned is the amount of the orders that recipients paid with coupons of the campaign's
	// template, in minor units of its currency, without refunded orders.
	Earned int64
}

// Series is what a campaign brought about over time, as of its last count.
type Series struct {
	Points   []Point
	Currency string // of Earned; "" = the campaign is about no template
}

// Total returns the sums of all points.
func (s Series) Total() (sum Point) {
	for _, p := range s.Points {
		sum.Sent, sum.Delivered, sum.Opened = sum.Sent+p.Sent, sum.Delivered+p.Delivered, sum.Opened+p.Opened
		sum.Claimed, sum.Earned = sum.Claimed+p.Claimed, sum.Earned+p.Earned
	}
	return sum
}

// maxPoints bounds the points of a series.
const maxPoints = 60

// SeriesSpan returns the span of the points of a series that covers so much time.
func SeriesSpan(window time.Duration) time.Duration {
	spans := []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}
	for _, span := range spans {
		if window <= maxPoints*span {
			return span
		}
	}
	return 7 * 24 * time.Hour
}

// Course returns what the campaign brought about over time, and the looks at its test. It returns
// [ErrNotFound].
func (s *Service) Course(ctx context.Context, by staff.Actor, id int64) (Series, []TestDecision, error) {
	if _, err := s.view(ctx, by, id); err != nil {
		return Series{}, nil, err
	}
	series, err := s.Store.Series(ctx, id)
	if err != nil {
		return series, nil, err
	}
	looks, err := s.Store.Decisions(ctx, id)
	return series, looks, err
}
