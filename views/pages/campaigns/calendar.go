package campaigns

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// CampaignCalendar shows a month of campaigns and of the drops that they should not coincide with.
// With Day it shows one of the days in full.
type CampaignCalendar struct {
	Month time.Time // midnight UTC of its first day
	Today time.Time // midnight UTC of the date
	Days  []campaign.CalendarDay
	// Day is the content of the day that is shown in full; nil = the month is shown.
	Day *campaign.CalendarDay
	// Shop is the number of the only shop shown, Zone its zone; 0 = all, in
	// the console's zone.
	Shop  int64
	Zone  *time.Location
	Shops []template.Shop
}

// url is the calendar's address: of a month, or with day of a day.
func (p CampaignCalendar) url(month time.Time, day *time.Time) string {
	q := url.Values{"view": {"month"}, "month": {month.Format("2006-01")}}
	if day != nil {
		q.Set("day", day.Format(time.DateOnly))
	}
	if p.Shop != 0 {
		q.Set("shop", strconv.FormatInt(p.Shop, 10))
	}
	return "/campaigns?" + q.Encode()
}

func (p CampaignCalendar) nav() ui.MonthNavProps {
	now := time.Date(p.Today.Year(), p.Today.Month(), 1, 0, 0, 0, 0, time.UTC)
	return ui.MonthNavProps{Month: p.Month, Prev: p.url(p.Month.AddDate(0, -1, 0), nil), Next: p.url(p.Month.AddDate(0, 1, 0), nil),
		Now: p.url(now, nil) + "#today", Shown: now.Equal(p.Month)}
}

// newURL is where a campaign of the day is made; "" for days gone by.
func (p CampaignCalendar) newURL(ctx context.Context, day time.Time) string {
	if day.Before(p.Today) || !ui.May(ctx, staff.ManageCampaigns, p.Shop) {
		return ""
	}
	u := "/campaigns/new?day=" + day.Format(time.DateOnly)
	if p.Shop != 0 {
		u += "&shop=" + strconv.FormatInt(p.Shop, 10)
	}
	return u
}

func (p CampaignCalendar) month(ctx context.Context) ui.MonthProps {
	l := ui.From(ctx).Locale
	m := ui.MonthProps{Month: p.Month, Today: p.Today, Caption: ui.T(ctx, "calendar.caption", l.Month(p.Month))}
	for _, d := range p.Days {
		day := ui.MonthDay{Date: d.Date, Add: p.newURL(ctx, d.Date), AddLabel: ui.T(ctx, "calendar.new_on", l.Date(d.Date, time.UTC))}
		if len(d.List) > 0 {
			day.Inside = p.plans(d)
		}
		m.Days = append(m.Days, day)
	}
	return m
}

// nothing reports whether nothing is planned at all.
func (p CampaignCalendar) nothing() bool {
	for _, d := range p.Days {
		if len(d.List) > 0 {
			return false
		}
	}
	return true
}

func (p CampaignCalendar) zoneOf(e campaign.Planned) *time.Location {
	if zone, err := time.LoadLocation(e.Zone); err == nil && e.Zone != "" {
		return zone
	}
	return p.Zone
}

// mainZone is the zone of most entries, which the head of the page names.
func (p CampaignCalendar) mainZone() *time.Location {
	days, entries, most := p.Days, map[string]int{}, p.Zone
	if p.Day != nil {
		days = []campaign.CalendarDay{*p.Day}
	}
	for _, d := range days {
		for _, e := range d.List {
			zone := p.zoneOf(e)
			if entries[zone.String()]++; entries[zone.String()] > entries[most.String()] {
				most = zone
			}
		}
	}
	return most
}

// clock formats the time of day of an entry, with its zone if it differs from the zone of most entries.
func (p CampaignCalendar) clock(ctx context.Context, e campaign.Planned) string {
	l, zone := ui.From(ctx).Locale, p.zoneOf(e)
	at := e.At.Truncate(time.Minute)
	_, here := at.In(p.mainZone()).Zone()
	if _, there := at.In(zone).Zone(); here != there {
		return l.Clock(at, zone) + " " + l.Zone(at, zone)
	}
	return l.Clock(at, zone)
}

// isPlain says that the state of the entry follows from its day: it is scheduled, or over.
func isPlain(e campaign.Planned) bool {
	if e.Drop {
		return e.DropState == template.Scheduled || e.DropState == template.Closed
	}
	return !e.Awaiting && (e.State == campaign.Scheduled || e.State == campaign.Finished)
}

func plannedURL(e campaign.Planned) string {
	if e.Drop {
		return "/templates/" + strconv.FormatInt(e.ID, 10)
	}
	return parts.CampaignURL(e.ID, "")
}

// plannedState returns the state of the campaign as a colour and a text.
func plannedState(ctx context.Context, e campaign.Planned) (ui.Tone, string) {
	switch {
	case e.Drop:
		return ui.StateTone(e.DropState), ui.T(ctx, "state."+string(e.DropState))
	case e.Awaiting:
		return ui.Warn, ui.T(ctx, "campaign.state.awaiting")
	}
	return campaignTone(e.State), ui.T(ctx, "campaign.state."+string(e.State))
}

// moreText says how many more entries a full day has.
func moreText(ctx context.Context, d campaign.CalendarDay) string {
	if d.Many {
		return ui.T(ctx, "calendar.many_more", d.More)
	}
	return ui.N(ctx, "calendar.more", int64(d.More))
}

// listURL leads from a day to the list, filtered to it.
func (p CampaignCalendar) listURL() string {
	day := p.Day.Date.Format(time.DateOnly)
	return "/campaigns?from=" + day + "&to=" + day
}

func (p CampaignCalendar) shopChoice(ctx context.Context) ui.ChoiceProps {
	c := ui.ChoiceProps{Name: "shop", Label: ui.T(ctx, "field.shop"), Options: parts.ShopFilter(ctx, p.Shops), Required: true}
	if p.Shop != 0 {
		c.Value = strconv.FormatInt(p.Shop, 10)
	}
	return c
}

func plannedIcon(e campaign.Planned) string {
	if e.Drop {
		return "ticket"
	}
	return "speakerphone"
}

func (p CampaignCalendar) title(ctx context.Context) string {
	if p.Day != nil {
		return ui.From(ctx).Locale.Date(p.Day.Date, time.UTC)
	}
	return ui.T(ctx, "nav.calendar")
}

func (p CampaignCalendar) lead(ctx context.Context) string {
	if p.Day != nil {
		return ui.T(ctx, "calendar.times", ui.From(ctx).Locale.Zone(p.Day.Date, p.mainZone()))
	}
	return ui.T(ctx, "ui.sentences", ui.T(ctx, "calendar.lead"), ui.T(ctx, "calendar.times", ui.From(ctx).Locale.Zone(p.Month, p.mainZone())))
}

func (p CampaignCalendar) crumbs(ctx context.Context) []ui.Crumb {
	if p.Day == nil {
		return nil
	}
	return []ui.Crumb{{Label: ui.T(ctx, "nav.campaigns"), URL: p.url(p.Month, nil)}}
}
