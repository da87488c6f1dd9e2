// Package recipe sends campaigns by itself. A recipe of a shop is one of five forms; a round of it finds the users
// whom the form is about and sends them one campaign, which has the approval, the caps, the quiet hours, the
// hold-out and the account of every campaign.
package recipe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/series"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// Form is what a recipe is about.
type Form string

// The forms that have rounds. Expiring coupons have none: drops tell their owners, see [template.Spec.NotifyDays].
const (
	// Missed tells users who reserved a drop and did not claim, while coupons are left.
	Missed Form = "missed"
	// Lost tells users who got no coupon of a drop that sold out, or whose draw they lost.
	Lost Form = "lost"
	// WinBack gives a coupon to users who once had coupons of the shop and got none for some days.
	WinBack Form = "win_back"
	// Calendar tells customers of the shop its drops of the next seven days.
	Calendar Form = "calendar"
)

// Forms returns every form in the order of the page.
func Forms() []Form { return []Form{Missed, Lost, WinBack, Calendar} }

// AboutDrop reports whether a round of the form is about one drop.
func (f Form) AboutDrop() bool { return f == Missed || f == Lost }

// Faults of this room.
var (
	ErrNotFound = fault.New(fault.NotFound, "recipe_not_found", "there is no such recipe; load the page again")
	ErrNoShop   = fault.New(fault.NotFound, "shop_not_found", "there is no such shop; create it first")
)

// Limits of settings.
const (
	MaxMinutes = 24 * 60
	MaxDays    = 365
	// lasts is how long a round may be sent, unless its drop ends before.
	lasts = 24 * time.Hour
	// calendarDays is how far a calendar looks.
	calendarDays = 7
)

// Settings are the part of a recipe that staff decide.
type Settings struct {
	On      bool             `json:"on"`
	Channel delivery.Channel `json:"channel"`
	// Texts are the messages by language; "" is the default. {{drop}} is the name of the drop, and {{drops}} are the
	// shop's drops of the next seven days, a line each, in a calendar and for users who lost a drop.
	Texts map[string]delivery.Text `json:"texts"`
	// HoldOut is the percentage of the users found who get no message.
	HoldOut int `json:"hold_out,omitempty"`
	// AfterMinutes is how long after the opening of a drop its round begins, for [Missed] and [Lost].
	AfterMinutes int `json:"after_minutes,omitempty"`
	// Days is for how many days a user got no coupon, and EveryDays after how many a user may be found again, for
	// [WinBack]. Its users get a coupon of GrantTemplate.
	Days          int   `json:"days,omitempty"`
	EveryDays     int   `json:"every_days,omitempty"`
	GrantTemplate int64 `json:"grant_template,omitempty"`
	// Weekday and Clock are when a calendar is sent, on the clocks of the shop; Clock alone is when a win back looks
	// for users, each day.
	Weekday time.Weekday `json:"weekday,omitempty"`
	Clock   series.Clock `json:"clock,omitempty"`
}

// Check returns a [fault.Fields] that names every broken rule for the form. A recipe that is off may have no texts.
func (s Settings) Check(f Form) error {
	e := &fault.Fields{}
	if s.AfterMinutes < 0 || f.AboutDrop() && s.AfterMinutes < 1 || s.AfterMinutes > MaxMinutes {
		e.Add("after_minutes", "rule.recipe_minutes", "must be between 1 and %d", MaxMinutes)
	}
	if f == WinBack {
		for name, n := range map[string]int{"days": s.Days, "every_days": s.EveryDays} {
			if n < 1 || n > MaxDays {
				e.Add(name, "rule.recipe_days", "must be between 1 and %d", MaxDays)
			}
		}
		if s.On && s.GrantTemplate <= 0 {
			e.Add("grant_template", "rule.recipe_grant", "name the drop whose coupon is given")
		}
	}
	if s.Clock < 0 || s.Clock >= 24*3600 || s.Weekday < time.Sunday || s.Weekday > time.Saturday {
		e.Add("clock", "rule.series_clock", "must be a time of day, such as 20:00")
	}
	if s.On || len(s.Texts) > 0 {
		values, openings := map[string]string{}, []message.Opening(nil)
		if f.AboutDrop() {
			values["drop"] = "x"
		}
		if s.listsDrops(f) {
			openings = []message.Opening{{Name: "x"}}
		}
		content := s.content("", values, openings)
		content.Check(e)
	}
	return e.Err()
}

// drops is the placeholder of the next drops.
const drops = "{{drops}}"

// listsDrops reports whether the messages name the next drops of the shop. Without such a drop nothing is sent.
func (s Settings) listsDrops(f Form) bool {
	if f != Lost {
		return f == Calendar
	}
	for _, t := range s.Texts {
		if strings.Contains(t.Title+t.Body, drops) {
			return true
		}
	}
	return false
}

// content is the message with these values of its own placeholders. {{drops}} lists the openings in the language of
// each text.
func (s Settings) content(link string, values map[string]string, openings []message.Opening) delivery.Copy {
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, "{{"+name+"}}", value)
	}
	texts := make(map[string]delivery.Text, len(s.Texts))
	for tag, t := range s.Texts {
		put := strings.NewReplacer(pairs...)
		if len(openings) > 0 {
			put = strings.NewReplacer(append(slices.Clone(pairs), drops, message.Agenda(languageOf(tag, t), openings))...)
		}
		texts[tag] = delivery.Text{Title: put.Replace(t.Title), Body: put.Replace(t.Body)}
	}
	return delivery.Copy{Variants: []delivery.Variant{{Percent: 100, Texts: texts}}, HoldOut: s.HoldOut, Link: link}
}

// languageOf returns the language of a text. The default text, whose tag is empty, is Chinese if its title has a
// Chinese character, and English otherwise.
func languageOf(tag string, t delivery.Text) string {
	switch {
	case tag != "":
		return tag
	case strings.ContainsFunc(t.Title, func(r rune) bool { return unicode.Is(unicode.Han, r) }):
		return "zh"
	}
	return "en"
}

// A Recipe are the settings of a form in a shop.
type Recipe struct {
	ID       int64
	Shop     int64
	ShopName string
	Timezone string
	Form     Form
	Settings
	Version int64
}

// Zone returns the time zone of the shop, UTC if it is unknown.
func (r Recipe) Zone() *time.Location {
	return template.Template{ShopTimezone: r.Timezone}.Zone()
}

// next returns when a worker looks at the recipe after now: at the next minute, or at its time of day.
func (r Recipe) next(now time.Time) time.Time {
	if r.Form.AboutDrop() {
		return now.Truncate(time.Minute).Add(time.Minute)
	}
	day := series.DayOf(now.In(r.Zone()))
	for range 9 {
		at := series.Opening(day, r.Clock, r.Zone())
		if at.After(now) && (r.Form == WinBack || at.In(r.Zone()).Weekday() == r.Weekday) {
			return at
		}
		day = day.Add(1)
	}
	return now.Add(7 * 24 * time.Hour)
}

// RoundState is how far a round is.
type RoundState string

// The states: a round has begun, its users are found, its campaign is stored, or it is done with. Done means that
// the campaign is published or waits for approval, that no user was found, or that it was refused.
const (
	Begun RoundState = "begun"
	Found RoundState = "found"
	Made  RoundState = "made"
	Done  RoundState = "done"
)

// A Round is one look of a recipe for users.
type Round struct {
	ID       int64
	RecipeID int64
	Form     Form
	// Key makes the round unique within its recipe: the drop or the day.
	Key   string
	State RoundState
	// Drop is what the round is about; 0 = no drop.
	Drop int64
	// Until is the deadline: nothing is sent from then on.
	Until time.Time
	At    time.Time
	// Users is how many users were found, SegmentID the list of them, CampaignID the campaign; 0 = not yet, or none.
	Users      int64
	SegmentID  int64
	CampaignID int64
	// Why is why the campaign could not be stored or published; nil = it could.
	Why *fault.Fault
	// Settings are the recipe's at the time.
	Settings Settings
}

// A Listed is a round with the account of its campaign.
type Listed struct {
	Round
	// DropName is the name of the drop that the round is about; empty = no drop.
	DropName string
	// Campaign is the state of the campaign; "" = there is none. Asked says that it waits for approval.
	Campaign campaign.State
	Asked    bool
	Counts   delivery.Counts
	HeldOut  int64
}

// Expired reports whether the deadline came before all users had an outcome.
func (l Listed) Expired(now time.Time) bool {
	return !now.Before(l.Until) && (l.Counts.Expired > 0 || l.CampaignID != 0 && (l.Campaign == campaign.Draft || l.Campaign == campaign.Failed))
}

// entry is the line of the audit log about a change.
func (r Recipe) entry(by staff.Actor, before, after any) staff.Entry {
	return staff.Entry{Actor: by, Action: "recipe.save", ObjectKind: "recipe", ObjectID: fmt.Sprint(r.ID), ShopNumber: r.Shop, Before: before, After: after}
}

// Store keeps recipes.
type Store interface {
	// Recipes returns the stored recipes of a shop.
	Recipes(ctx context.Context, shop int64) ([]Recipe, error)
	// Save stores the settings if the version is current (0 = there is none yet) and makes a worker look at the
	// recipe; otherwise it returns [fault.ErrStale].
	Save(ctx context.Context, r Recipe, e staff.Entry) error
	// HasDrop reports whether the drop is one of the shop.
	HasDrop(ctx context.Context, shop, drop int64) (bool, error)
	// Rounds returns the last rounds of each recipe of the shop, the newest first.
	Rounds(ctx context.Context, shop int64, each int) ([]Listed, error)
	// Notified counts the drops of the shop that have not ended, and those of them that tell owners before their
	// coupons expire.
	Notified(ctx context.Context, shop int64) (drops, telling int64, err error)
	// Reach returns how many users a round of the recipe would find now, without the rule about earlier rounds; of a form
	// about a drop, a round of the shop's last drop that suits the form. known is false without such a drop, and if the count
	// takes too long.
	Reach(ctx context.Context, r Recipe) (n int64, known bool, err error)
}

// Service holds the use cases of staff around recipes.
type Service struct{ Store Store }

// A Page is what a member sees of the recipes of a shop.
type Page struct {
	// Recipes are all forms, in order; those that were never saved have the version 0.
	Recipes []Recipe
	Rounds  []Listed
	// Drops and Telling are about expiring coupons; see [Store.Notified].
	Drops, Telling int64
	// Reach is how many users a round would find of each form that is off, as far as known; see [Service.Reach].
	Reach map[Form]int64
}

// shownRounds is how many rounds of each recipe a page shows.
const shownRounds = 5

// Page returns the recipes of a shop, or [staff.ErrForbidden].
func (s *Service) Page(ctx context.Context, by staff.Actor, shop int64) (p Page, err error) {
	if err := by.May(staff.View, shop); err != nil {
		return p, err
	}
	stored, err := s.Store.Recipes(ctx, shop)
	if err != nil {
		return p, err
	}
	for _, f := range Forms() {
		i := slices.IndexFunc(stored, func(r Recipe) bool { return r.Form == f })
		if i >= 0 {
			p.Recipes = append(p.Recipes, stored[i])
		} else {
			p.Recipes = append(p.Recipes, Recipe{Shop: shop, Form: f, Settings: Settings{AfterMinutes: 30, Days: 60, EveryDays: 30, Clock: 10 * 3600, Weekday: time.Monday}})
		}
	}
	if p.Rounds, err = s.Store.Rounds(ctx, shop, shownRounds); err != nil {
		return p, err
	}
	p.Drops, p.Telling, err = s.Store.Notified(ctx, shop)
	return p, err
}

// Reach counts the users that a round would find, of each form of the page that is off.
func (s *Service) Reach(ctx context.Context, p *Page) error {
	p.Reach = map[Form]int64{}
	for _, r := range p.Recipes {
		if r.On {
			continue
		}
		n, known, err := s.Store.Reach(ctx, r)
		if err != nil {
			return err
		}
		if known {
			p.Reach[r.Form] = n
		}
	}
	return nil
}

// Save stores the settings of a form. It returns a [fault.Fields], [ErrNotFound] for an unknown form, [ErrNoShop],
// [fault.ErrStale] or [staff.ErrForbidden].
func (s *Service) Save(ctx context.Context, by staff.Actor, shop int64, f Form, version int64, set Settings) error {
	if err := by.May(staff.ManageCampaigns, shop); err != nil {
		return err
	}
	if !slices.Contains(Forms(), f) {
		return ErrNotFound
	}
	if err := set.Check(f); err != nil {
		return err
	}
	if set.GrantTemplate != 0 {
		has, err := s.Store.HasDrop(ctx, shop, set.GrantTemplate)
		if err != nil {
			return err
		}
		if !has {
			e := &fault.Fields{}
			e.Add("grant_template", "rule.recipe_grant_shop", "is no drop of this shop")
			return e
		}
	}
	stored, err := s.Store.Recipes(ctx, shop)
	if err != nil {
		return err
	}
	old := Recipe{Shop: shop, Form: f}
	if i := slices.IndexFunc(stored, func(r Recipe) bool { return r.Form == f }); i >= 0 {
		old = stored[i]
	}
	if old.Version != version {
		return fault.ErrStale
	}
	next := old
	next.Settings = set
	return s.Store.Save(ctx, next, old.entry(by, old.Settings, set))
}

// Stop turns a recipe off; its settings stay, and rounds that have begun go on. It returns [fault.ErrStale] if staff change the
// recipe meanwhile, or [staff.ErrForbidden].
func (s *Service) Stop(ctx context.Context, by staff.Actor, shop int64, f Form) error {
	if err := by.May(staff.ManageCampaigns, shop); err != nil {
		return err
	}
	stored, err := s.Store.Recipes(ctx, shop)
	i := slices.IndexFunc(stored, func(r Recipe) bool { return r.Form == f })
	if err != nil || i < 0 || !stored[i].On {
		return err
	}
	next := stored[i]
	next.On = false
	return s.Store.Save(ctx, next, next.entry(by, stored[i].Settings, next.Settings))
}

// Skipped is how many of the users were skipped or could not be reached, other than those held out.
func (l Listed) Skipped() int64 {
	return l.Counts.Skipped - l.HeldOut + l.Counts.Expired + l.Counts.Dead
}

// Left is how many of the users found have no outcome yet: found = sent + skipped + held out + left.
func (l Listed) Left() int64 { return l.Users - l.Counts.Sent - l.Skipped() - l.HeldOut }
