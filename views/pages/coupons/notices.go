package coupons

import (
	"context"
	"net/url"
	"time"

	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/views/ui"
)

// NoticeCalendar shows a month of the notices before coupons expire.
type NoticeCalendar struct {
	Month time.Time          // midnight UTC of its first day
	Days  []coupon.NoticeDay // those of [ui.MonthSpan], with or without notices
	Today time.Time          // midnight UTC of the date
}

func noticesURL(month time.Time) string {
	return "/notices?" + url.Values{"month": {month.Format("2006-01")}}.Encode()
}

func (p NoticeCalendar) nav() ui.MonthNavProps {
	now := time.Date(p.Today.Year(), p.Today.Month(), 1, 0, 0, 0, 0, time.UTC)
	return ui.MonthNavProps{Month: p.Month, Prev: noticesURL(p.Month.AddDate(0, -1, 0)), Next: noticesURL(p.Month.AddDate(0, 1, 0)),
		Now: noticesURL(now), Shown: now.Equal(p.Month)}
}

func (p NoticeCalendar) month(ctx context.Context) ui.MonthProps {
	m := ui.MonthProps{Month: p.Month, Today: p.Today, Caption: ui.T(ctx, "notices.caption", ui.From(ctx).Locale.Month(p.Month))}
	for _, d := range p.Days {
		day := ui.MonthDay{Date: d.Day}
		if d.Planned > 0 {
			day.Inside = noticeCell(d)
		}
		m.Days = append(m.Days, day)
	}
	return m
}

// some are the days that have notices.
func (p NoticeCalendar) some() []coupon.NoticeDay {
	var list []coupon.NoticeDay
	for _, d := range p.Days {
		if d.Planned > 0 {
			list = append(list, d)
		}
	}
	return list
}

// noticeFigure names a number of a day, for the comparison with the rows.
func noticeFigure(d coupon.NoticeDay, what string) string {
	return "notice:" + d.Day.Format(time.DateOnly) + ":" + what
}

// noticeCounts are a day's notices as the bar draws them.
func noticeCounts(d coupon.NoticeDay) delivery.Counts {
	return delivery.Counts{Reserved: d.Planned, Sent: d.Sent, Dead: d.Failed, Skipped: d.Dropped, InFlight: d.Waiting()}
}

// A noticeLine is one status of a day with how many notices have it.
type noticeLine struct {
	key, swatch string
	n           int64
}

// noticeLines are the statuses that a day's notices have.
func noticeLines(d coupon.NoticeDay) []noticeLine {
	var list []noticeLine
	for _, l := range []noticeLine{{"sent", "sent", d.Sent}, {"waiting", "inflight", d.Waiting()}, {"failed", "dead", d.Failed}, {"dropped", "skipped", d.Dropped}} {
		if l.n > 0 {
			list = append(list, l)
		}
	}
	return list
}
