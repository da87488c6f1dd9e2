package campaigns

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/template"
	campaignpages "dropbell/views/pages/campaigns"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

const (
	// plansPerDay is how many things of a day have room in a month.
	plansPerDay = 4
	// plansInDay is how many entries of a day are listed when the day is shown alone.
	plansInDay = 200
	// newHour is the hour at which a campaign starts that is made for a day.
	newHour = 10
)

// typedDate reads "2026-11-14"; ok is false for any other text.
func typedDate(s string) (day time.Time, ok bool) {
	day, err := time.Parse(time.DateOnly, s)
	return day, err == nil && day.Year() >= 2000 && day.Year() <= 2999
}

func (h *handlers) campaignCalendar(w http.ResponseWriter, r *http.Request) error {
	p := campaignpages.CampaignCalendar{Zone: h.DefaultZone}
	var err error
	if p.Shops, err = h.AllShopsOf(r); err != nil {
		return err
	}
	q := campaign.CalendarQuery{Zone: h.DefaultZone, PerDay: plansPerDay}
	today := p.Zone
	if len(p.Shops) > 0 && !slices.ContainsFunc(p.Shops, func(s template.Shop) bool { return s.Timezone != p.Shops[0].Timezone }) {
		today = h.ShopZone(p.Shops[0].Timezone)
	}
	if shop, ok := chosenShop(r, p.Shops); ok {
		p.Shop, p.Zone, q.Shops = shop.Number, h.ShopZone(shop.Timezone), []int64{shop.Number}
		today = p.Zone
	}
	p.Today = shell.DateIn(h.Now(), today)
	p.Month = ui.ParseMonth(r.FormValue("month"), p.Today)
	day, one := typedDate(r.FormValue("day"))
	if one {
		p.Month = ui.ParseMonth(day.Format("2006-01"), p.Today)
		q.From, q.To, q.PerDay = day, day.AddDate(0, 0, 1), plansInDay
	} else {
		q.From, q.To = ui.MonthSpan(shell.Frame(r).Locale, p.Month)
	}
	got, err := shell.Across(h.Shell, r, h.cells, func(h *handlers, r *http.Request) ([]campaign.CalendarDay, error) {
		return h.Campaigns.Calendar(r.Context(), shell.Actor(r), q)
	})
	if err != nil {
		return err
	}
	p.Days = *got[0]
	for _, days := range got[1:] {
		if days != nil {
			p.Days = campaign.JoinDays(p.Days, *days, q.PerDay)
		}
	}
	if one {
		p.Day, p.Days = &p.Days[0], nil
	}
	return h.Show(w, r, http.StatusOK, p.Page())
}

// chosenShop returns the shop that the request names, if the viewer may see it.
func chosenShop(r *http.Request, shops []template.Shop) (template.Shop, bool) {
	number, err := strconv.ParseInt(r.FormValue("shop"), 10, 64)
	i := slices.IndexFunc(shops, func(s template.Shop) bool { return s.Number == number })
	if err != nil || i < 0 {
		return template.Shop{}, false
	}
	return shops[i], true
}

// plannedShop is the hidden field with the shop in whose zone the form has filled in its times.
const plannedShop = "planned_shop"

// plannedTimes maps each visible time field to the hidden field with the time that the form has
// filled in.
func plannedTimes() map[string]string {
	return map[string]string{"starts_at": "planned_starts_at", "ends_at": "planned_ends_at"}
}

// replan converts filled-in times that the member has not changed to the zone of the newly chosen
// shop. Typed times keep their local time.
func (h *handlers) replan(r *http.Request, v map[string]string, shops []template.Shop) (moved bool) {
	if !r.PostForm.Has(plannedShop) {
		return false
	}
	was, _ := strconv.ParseInt(r.PostFormValue(plannedShop), 10, 64) // nonsense is no shop
	now, _ := strconv.ParseInt(v["shop"], 10, 64)
	v[plannedShop] = v["shop"]
	for name, planned := range plannedTimes() {
		at, broken := shell.Instant(v[name], "", h.zoneOf(was, shops))
		if v[name] != r.PostFormValue(planned) || broken != "" {
			continue
		}
		there, _ := shell.TypedTime(at, h.zoneOf(now, shops))
		moved = moved || there != v[name]
		v[name], v[planned] = there, there
	}
	return moved
}

// plannedStart returns the default start and end of a new campaign: at the next full hour, or on
// the morning of the day in the address, in the zone of the shop in the address, otherwise of the
// shop used last.
func (h *handlers) plannedStart(r *http.Request, shops []template.Shop) (from, to time.Time, shop int64, zone *time.Location, err error) {
	zone = h.DefaultZone
	s, ok := chosenShop(r, shops)
	if !ok {
		if s, ok, err = h.lastShop(r, shops); err != nil {
			return from, to, shop, zone, err
		}
	}
	if ok {
		shop, zone = s.Number, h.ShopZone(s.Timezone)
	}
	from = h.Now().Add(time.Hour).Truncate(time.Hour)
	if day, ok := typedDate(r.FormValue("day")); ok {
		if at := time.Date(day.Year(), day.Month(), day.Day(), newHour, 0, 0, 0, zone); at.After(from) {
			from = at
		}
	}
	return from, from.Add(24 * time.Hour), shop, zone, nil
}

// lastShop returns the shop of the last campaign that the member may see, otherwise the first shop;
// false if there is no shop.
func (h *handlers) lastShop(r *http.Request, shops []template.Shop) (template.Shop, bool, error) {
	if len(shops) == 0 {
		return template.Shop{}, false, nil
	}
	const lately = 20
	last, err := shell.All(h.Shell, r, h.cells, func(h *handlers, r *http.Request) ([]campaign.Status, error) {
		return h.Campaigns.Campaigns(r.Context(), shell.Actor(r), campaign.Query{Limit: lately})
	}, func(a, b campaign.Status) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
	}, lately)
	for _, c := range last {
		if i := slices.IndexFunc(shops, func(s template.Shop) bool { return s.Number == c.Shop }); i >= 0 {
			return shops[i], true, nil
		}
	}
	return shops[0], true, err
}
