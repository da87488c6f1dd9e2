package drops

import (
	"time"

	"dropbell/domain/claim/gate"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/web/api/parts"
	"dropbell/web/api/pipeline"
)

// TemplateWish is a template to be created.
type TemplateWish struct {
	ShopNumber   string     `json:"shop_number" pattern:"^[1-9][0-9]{0,18}$" example:"10"`
	Name         string     `json:"name" doc:"At most 120 characters." example:"20 off"`
	Description  string     `json:"description,omitempty" doc:"At most 4000 characters."`
	Kind         string     `json:"kind" enum:"amount_off,threshold_off,percent_off" example:"amount_off"`
	AmountOff    int64      `json:"amount_off,omitempty" doc:"For amount_off and threshold_off: minor units of the currency." example:"1000"`
	Threshold    int64      `json:"threshold,omitempty" doc:"For threshold_off, and if wanted percent_off: least order value in minor units." example:"5000"`
	PercentOff   int        `json:"percent_off,omitempty" doc:"For percent_off: 1 to 100." example:"20"`
	MaxOff       int64      `json:"max_off,omitempty" doc:"For percent_off: largest discount, in minor units." example:"3000"`
	Currency     string     `json:"currency" doc:"ISO 4217." example:"CNY"`
	Target       string     `json:"target,omitempty" enum:"shop,product" default:"shop" doc:"The purchases that the coupon is valid for."`
	Product      string     `json:"product,omitempty" doc:"For target product: which one."`
	Stock        int64      `json:"stock" doc:"How many coupons there are." example:"100"`
	PerUserLimit int        `json:"per_user_limit,omitempty" default:"1" minimum:"1" doc:"How many of them one user can get."`
	Household    int        `json:"household_limit,omitempty" minimum:"0" maximum:"1000" doc:"How many of them the users of one household can get together; 0 = no limit. Fixed once the drop is published." example:"0"`
	OpensAt      time.Time  `json:"opens_at" doc:"Any whole second." example:"2027-01-01T12:00:00Z"`
	ClosesAt     time.Time  `json:"closes_at" doc:"Any whole second after the opening." example:"2027-01-02T12:00:00Z"`
	ValidUntil   *time.Time `json:"valid_until,omitempty" doc:"How long a claimed coupon is valid; either this or valid_hours. The drop ends with it, if that comes before closes_at." patch:"null = by valid_hours."`
	ValidHours   int        `json:"valid_hours,omitempty" doc:"Hours a coupon is valid from claiming; either this or valid_until." patch:"null = by valid_until." example:"48"`
	Obtain       string     `json:"obtain,omitempty" enum:"claim,code" default:"claim" doc:"How users get the coupon."`
	ClaimMode    string     `json:"claim_mode,omitempty" enum:"durable,gate" default:"durable" doc:"Which gate decides claims."`
	ClaimURL     string     `json:"claim_url,omitempty" doc:"Where messages lead to."`
	NoticeWish
	StaffNote
	HoldOut
	Waitlist string `json:"waitlist,omitempty" enum:"off,issue,offer" default:"off" doc:"Who gets stock that comes back after the drop sold out: off = the next claim, issue = the next user of the waitlist, offer = the same, who must accept it within accept_minutes. Fixed once the drop is published."`
	ReturnWish
	ProtectionWish
	StackingWish
	OpeningWish
}

// TemplatePatch is a change of a template: absent fields stay as they are.
type TemplatePatch struct {
	pipeline.Change[TemplateWish, TemplateMove]
}

// TemplateMove has the fields of a [TemplatePatch] that are not fields of the template.
type TemplateMove struct {
	Reason     string `json:"reason,omitempty" maxLength:"500" doc:"Reason for the audit log; recommended when the opening moves."`
	RemindOnce bool   `json:"remind_once,omitempty" doc:"With a moved opening: users who have been sent a reminder already are not sent it again for the new opening."`
}

// StaffNote is what members of the staff tell each other about a template.
type StaffNote struct {
	Note string `json:"note,omitempty" doc:"For staff only; users never see it. At most 500 characters." example:"Approved by Ann"`
}

// ReturnWish sets how coupons come back to the stock. All of it is fixed once the drop is published.
type ReturnWish struct {
	AcceptMinutes  int    `json:"accept_minutes,omitempty" maximum:"1440" doc:"With waitlist offer: how long an offer can be accepted, 5 to 1440 minutes of the user's waking hours; 30 if left out." example:"30"`
	UseWithinHours int    `json:"use_within_hours,omitempty" minimum:"0" maximum:"8760" doc:"Within how many hours a coupon must be used. While the drop runs, an unused coupon then returns to the stock, and goes to the waitlist first. 0 = no such limit." example:"24"`
	RefundTo       string `json:"refund_to,omitempty" enum:"holder,stock" default:"holder" doc:"Who has a coupon after its order was refunded: its holder, or the stock." example:"holder"`
}

// HoldOut is the share of a drop's users who get no message about it.
type HoldOut struct {
	HoldOutPercent int `json:"hold_out_percent,omitempty" minimum:"0" maximum:"90" doc:"The percentage of the users with reservations who get no message about the drop, so that the effect of its messages can be measured. Fixed once the drop is published." example:"10"`
}

// ProtectionWish is what a drop demands of claims against scripts.
type ProtectionWish struct {
	Protection string `json:"protection,omitempty" enum:"off,standard,strict" default:"off" doc:"standard: a claim needs a pass, which POST /passes/{template_id} gives. strict: a puzzle alone earns no pass. Needs PASS_SECRET." example:"off"`
}

// StackingWish says which coupons go together in one order.
type StackingWish struct {
	StackGroup  string   `json:"stack_group,omitempty" doc:"The group of the coupons: 1 to 32 small letters, digits, - and _. Without a group the coupons stand alone in an order." patch:"\"\" = they stand alone." example:"welcome"`
	StacksWith  []string `json:"stacks_with,omitempty" maxItems:"20" nullable:"false" doc:"The groups that the coupons go together with in an order. The drops of these groups must name stack_group too." patch:"null or [] = none." example:"[\"member\"]"`
	MaxPerOrder int      `json:"max_per_order,omitempty" default:"1" minimum:"1" maximum:"5" doc:"How many coupons of the drop one order can use. Fixed once the drop is published." example:"1"`
	RefundRule  string   `json:"refund_rule,omitempty" enum:"keep,recompute" default:"keep" doc:"What a partial refund does if the lines that stay are below the threshold: keep = they keep their share of the discount, recompute = they lose it. Fixed once the drop is published." example:"keep"`
}

// OpeningWish is how the coupons of a drop are shared among the users who want one. All of it is fixed once
// the drop is published.
type OpeningWish struct {
	OpeningMode  string `json:"opening_mode,omitempty" enum:"first_come,shuffled,draw" default:"first_come" doc:"first_come: claims from opens_at on. shuffled and draw: users enter until opens_at, and a draw that everybody can recompute decides." example:"draw"`
	EntryMinutes int    `json:"entry_minutes,omitempty" minimum:"0" maximum:"525600" doc:"How many minutes before opens_at entries are taken from: 1 to 60 for shuffled; for draw 0 = from the publication." example:"30"`
	DrawSource   string `json:"draw_source,omitempty" enum:"drand,public,commit,local" doc:"The source of randomness; the best of this server if none is named. commit is weaker: whoever knows the secret can add entries that win." example:"drand"`
	DrawPublic   string `json:"draw_public,omitempty" doc:"For public: the public draw whose figures decide, with its day. At most 200 characters." example:"Lotto 6aus49, 2 January 2027"`
	AcceptHours  int    `json:"accept_hours,omitempty" minimum:"0" maximum:"336" doc:"For draw: for how many hours winners may accept their coupon, with POST /draws/{id}/acceptance; then the next tickets move up. 0 = winners get it at once. At most 1000 coupons." example:"0"`
}

// NoticeWish sets when owners get a notice of the expiry of their coupon.
type NoticeWish struct {
	NotifyDays     []int    `json:"notify_days,omitempty" maxItems:"31" nullable:"false" doc:"Days before the expiry of a coupon on which its owner gets a notice; 0 = its last day." patch:"null or [] = no notices; concerns coupons issued from then on." example:"[3,1]"`
	NotifyChannels []string `json:"notify_channels,omitempty" maxItems:"5" nullable:"false" doc:"Over which channels; the app's inbox if none is named." example:"[\"app\"]"`
}

// Template is a template as staff see it.
type Template struct {
	ID           string `json:"id" example:"1"`
	State        string `json:"state" enum:"draft,scheduled,open,sold_out,paused,closed,cancelled" example:"draft"`
	Version      int64  `json:"version" doc:"Grows with every change; send it as If-Match." example:"1"`
	ShopNumber   string `json:"shop_number" example:"10"`
	ShopName     string `json:"shop_name" example:"Shop 10"`
	ShopTimezone string `json:"shop_timezone" example:"Asia/Shanghai"`
	Name         string `json:"name" example:"20 off"`
	Description  string `json:"description"`
	parts.Discount
	Target       string     `json:"target" enum:"shop,product" example:"shop"`
	Product      string     `json:"product,omitempty"`
	Stock        int64      `json:"stock" example:"100"`
	Ledger       Ledger     `json:"stock_ledger"`
	Coupons      *Tally     `json:"coupons,omitempty" doc:"The coupons by state; not in lists."`
	PerUserLimit int        `json:"per_user_limit" example:"1"`
	Household    int        `json:"household_limit,omitempty" example:"0"`
	OpensAt      time.Time  `json:"opens_at" example:"2027-01-01T12:00:00Z"`
	ClosesAt     time.Time  `json:"closes_at" example:"2027-01-02T12:00:00Z"`
	ValidUntil   *time.Time `json:"valid_until,omitempty"`
	ValidHours   int        `json:"valid_hours,omitempty" example:"48"`
	Obtain       string     `json:"obtain" enum:"claim,code" example:"claim"`
	ClaimMode    string     `json:"claim_mode" enum:"durable,gate" example:"durable"`
	ClaimURL     string     `json:"claim_url,omitempty"`
	NoticeWish
	StaffNote
	HoldOut
	Waitlist string `json:"waitlist" enum:"off,issue,offer" example:"off"`
	ReturnWish
	ProtectionWish
	StackingWish
	OpeningWish
	CreatedAt   time.Time  `json:"created_at"`
	UpdatedAt   time.Time  `json:"updated_at"`
	PublishedAt *time.Time `json:"published_at,omitempty"`
	EndedAt     *time.Time `json:"ended_at,omitempty"`
	Slots       []Slot     `json:"slots,omitzero" nullable:"false" doc:"The reminder slots of the current opening, the farthest first; empty for a draft, and absent from lists."`
	Earlier     []Slot     `json:"earlier_slots,omitempty" nullable:"false" doc:"Slots that fired for an opening that was moved since."`
}

// Ledger accounts for the stock: total = shelf + held + writing + issued.
type Ledger struct {
	Total   int64  `json:"total" example:"100"`
	Shelf   *int64 `json:"shelf,omitempty" doc:"Can still be claimed. Absent, like writing, in lists for a drop behind the gate, and while Redis does not answer." example:"100"`
	Writing *int64 `json:"writing,omitempty" doc:"Accepted by the gate and not in the database yet; 0 for the durable gate, which decides in the database." example:"0"`
	Held    int64  `json:"held" doc:"Kept for users of the waitlist." example:"0"`
	Issued  int64  `json:"issued" doc:"Coupons there are, without those that were returned to stock." example:"0"`
	Left    int64  `json:"left" doc:"Total less held and issued: shelf and writing together." example:"100"`
}

// Tally counts the coupons by outcome, as far as events have arrived. unused, locked, used, expired,
// revoked and suspended are states and add up to issued.
type Tally struct {
	Issued     int64 `json:"issued" doc:"All there ever were, with those returned to stock." example:"40"`
	Unused     int64 `json:"unused" example:"25"`
	Locked     int64 `json:"locked" example:"2"`
	Used       int64 `json:"used" example:"12"`
	Expired    int64 `json:"expired" example:"0"`
	Revoked    int64 `json:"revoked" example:"1"`
	Suspended  int64 `json:"suspended" doc:"Under review." example:"0"`
	Returned   int64 `json:"returned" doc:"Of the revoked: returned to stock." example:"1"`
	Released   int64 `json:"released" doc:"Locks that ended without a use, by the order or by time-out." example:"3"`
	Refunded   int64 `json:"refunded" doc:"Uses that were refunded." example:"1"`
	Discounted int64 `json:"discounted" doc:"The discounts of used coupons, in minor units of currency." example:"24000"`
}

func tallyJSON(y coupon.Tally) *Tally {
	return &Tally{y.Issued, y.Unused(), y.Locked, y.Used, y.Expired, y.Revoked, y.Suspended, y.Returned, y.Released, y.Refunded, int64(y.Discounted)}
}

// ledgerJSON leaves out the fields that the template alone does not hold.
func ledgerJSON(t template.Template) Ledger {
	l := Ledger{Total: t.Stock, Held: t.Held, Issued: t.Issued, Left: t.StockLeft()}
	if t.ClaimMode != template.Gate {
		l.Shelf, l.Writing = new(t.StockLeft()), new(int64(0))
	}
	return l
}

// stockJSON has shelf and writing as separate numbers, if they are known.
func stockJSON(a gate.Account) Ledger {
	l := Ledger{Total: a.Total, Held: a.Held, Issued: a.Issued, Left: a.Total - a.Held - a.Issued}
	if !a.Away {
		l.Shelf, l.Writing = &a.OnSale, &a.Writing
	}
	return l
}

// Slot is one due instant.
type Slot struct {
	Slot     int       `json:"slot" doc:"1 to 12; slot k is 5k minutes before the opening." example:"1"`
	Minutes  int       `json:"minutes" example:"5"`
	DueAt    time.Time `json:"due_at" example:"2027-01-01T11:55:00Z"`
	State    string    `json:"state" enum:"waiting,firing,sending,finished,passed,moved,cancelled" example:"waiting"`
	Round    int       `json:"round,omitempty" doc:"1 and more: the opening was moved away after the slot had fired, and back. This is for users whom the earlier rounds did not reach."`
	Doors    []int     `json:"doors,omitempty" nullable:"false" doc:"The doors, from 1, that open at the opening which the slot precedes; absent = it is for all users." example:"[1]"`
	Channels []Cell    `json:"channels" nullable:"false"`
}

// Cell is one channel of a slot.
type Cell struct {
	Channel string `json:"channel" example:"app"`
	Booked  int64  `json:"booked" doc:"Reminders reserved now." example:"12"`
	parts.Account
}

// notices are the conversions of the days and channels of notices, and of groups of coupons.
var notices = []pipeline.Conversion{
	pipeline.Converts(template.NoticeDays.List, func(days []int) template.NoticeDays { return template.NoticeDaysOf(days...) }),
	pipeline.Converts(template.ChannelNames, func(names []string) delivery.ChannelSet { return template.ParseChannels(names...) }),
	pipeline.Converts(template.Groups.List, func(names []string) template.Groups { return template.GroupsOf(names...) }),
}

var (
	wished = pipeline.Copies[template.Spec, TemplateWish](template.Fields, notices...)
	shown  = pipeline.Copies[template.Spec, Template](template.Fields, notices...)
)

func (w TemplateWish) spec() (s template.Spec, err error) {
	err = wished.From(&s, w)
	return s.WithNotices(s.NotifyDays, s.NotifyOver), err
}

// apply returns s with the patch applied.
func (p TemplatePatch) apply(s template.Spec) (template.Spec, error) {
	var w TemplateWish
	wished.To(&w, s)
	return p.On(w).spec()
}

func templateJSON(t template.Template, now time.Time) Template {
	answer := Template{ID: pipeline.Decimal(t.ID), State: string(t.State(now)), Version: t.Version, ShopName: t.ShopName, ShopTimezone: t.ShopTimezone,
		Ledger: ledgerJSON(t), CreatedAt: t.CreatedAt.UTC(), UpdatedAt: t.UpdatedAt.UTC(), PublishedAt: pipeline.UTC(t.PublishedAt), EndedAt: pipeline.UTC(t.EndedAt)}
	shown.To(&answer, t.Spec)
	return answer
}

func slotsJSON(rows []reminder.Row) []Slot {
	list := make([]Slot, len(rows))
	for i, r := range rows {
		list[i] = Slot{int(r.Slot.Slot), r.Slot.Slot.Minutes(), r.DueAt.UTC(), string(r.State), r.Round, nil, make([]Cell, len(r.Cells))}
		for place := 1; place <= template.MaxDoors && r.Doors != template.AllDoors; place++ {
			if r.Doors.Has(place) {
				list[i].Doors = append(list[i].Doors, place)
			}
		}
		for j, c := range r.Cells {
			list[i].Channels[j] = Cell{c.Channel.String(), c.Booked, parts.AccountOf(c.Counts)}
		}
	}
	return list
}
