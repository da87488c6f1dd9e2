package audience

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/user"
	"dropbell/web/api/pipeline"
)

// PushSubscription is the subscription that a browser's PushManager returned.
type PushSubscription struct {
	Endpoint string `json:"endpoint" maxLength:"2000" example:"https://push.example.com/send/abc"`
	P256dh   string `json:"p256dh" maxLength:"200" doc:"keys.p256dh of the subscription."`
	Auth     string `json:"auth" maxLength:"100" doc:"keys.auth of the subscription."`
}

// QuietHours is a daily span in the user's zone.
type QuietHours struct {
	From string `json:"from" doc:"24-hour time." example:"22:00"`
	To   string `json:"to" doc:"24-hour time; may lie after midnight, and must differ from from." example:"08:00"`
}

// Preferences say how a user is reached, and which messages the user does not want.
type Preferences struct {
	Email      string             `json:"email" doc:"Empty = none."`
	Phone      string             `json:"phone" doc:"E.164; empty = none." example:"+8613800138000"`
	VerifiedAt *time.Time         `json:"phone_verified_at,omitempty" doc:"When the user proved the number, or the shop said that it was proved; absent = it was not."`
	Push       []PushSubscription `json:"push" nullable:"false"`
	OptOuts    []string           `json:"opt_outs" nullable:"false" doc:"Channels that the user has opted out of." example:"[\"sms\"]"`
	QuietHours *QuietHours        `json:"quiet_hours,omitempty" doc:"Absent = none."`
	Locale     string             `json:"locale" doc:"BCP 47; empty = unknown." example:"zh-CN"`
	Timezone   string             `json:"timezone" doc:"IANA; empty = UTC." example:"Asia/Shanghai"`
}

// PreferencesChange is a change of preferences: absent fields stay as they are.
type PreferencesChange struct {
	Email      pipeline.Optional[string]             `json:"email,omitempty" maxLength:"254" doc:"Empty or null = none." example:"ann@example.com"`
	Phone      pipeline.Optional[string]             `json:"phone,omitempty" maxLength:"20" doc:"E.164; empty or null = none." example:"+8613800138000"`
	VerifiedAt pipeline.Optional[time.Time]          `json:"phone_verified_at,omitempty" doc:"Ignored: only a code, or the shop, verifies a number. It may be sent back as it was shown."`
	Push       pipeline.Optional[[]PushSubscription] `json:"push,omitempty" maxItems:"20" doc:"All of the user's browsers; null or [] = none."`
	OptOuts    pipeline.Optional[[]string]           `json:"opt_outs,omitempty" maxItems:"5" doc:"Channels that the user opts out of; null or [] = none." example:"[\"sms\"]"`
	QuietHours pipeline.Optional[QuietHours]         `json:"quiet_hours,omitempty" doc:"null = none."`
	Locale     pipeline.Optional[string]             `json:"locale,omitempty" maxLength:"35" doc:"BCP 47; empty or null = unknown." example:"zh-CN"`
	Timezone   pipeline.Optional[string]             `json:"timezone,omitempty" maxLength:"64" doc:"IANA; empty or null = UTC." example:"Asia/Shanghai"`
}

type preferencesAnswer struct{ Body Preferences }

func (h *handlers) preferenceRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodGet, Path: "/preferences", ID: "get-preferences",
		Summary: "Show the user's contacts and preferences"},
		func(ctx context.Context, _ *struct{}) (*preferencesAnswer, error) {
			u, err := h.Users.Preferences(ctx, pipeline.UserOf(ctx))
			return &preferencesAnswer{preferencesJSON(u)}, err
		})
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodPut, Path: "/preferences", ID: "set-preferences",
		Summary:     "Change the user's contacts and preferences",
		Description: "Fields that are left out stay as they are. Answers with everything as it is now.",
		Codes:       []string{"channel_unavailable", "user_erased", "user_not_found"},
		Example:     `{"email":"ann@example.com","opt_outs":["sms"],"quiet_hours":{"from":"22:00","to":"08:00"},"locale":"zh-CN","timezone":"Asia/Shanghai"}`},
		func(ctx context.Context, in *struct{ Body PreferencesChange }) (*preferencesAnswer, error) {
			c, err := in.Body.change(pipeline.UserOf(ctx))
			if err != nil {
				return nil, err
			}
			u, err := h.Users.SetPreferences(ctx, c)
			return &preferencesAnswer{preferencesJSON(u)}, err
		})
}

func (p PreferencesChange) change(id user.ID) (user.Change, error) {
	c := user.Change{ID: id, Email: p.Email.Pointer(), Phone: p.Phone.Pointer(), Locale: p.Locale.Pointer(), Timezone: p.Timezone.Pointer()}
	if p.Push.Set {
		subs := make([]user.PushSubscription, len(p.Push.Value))
		for i, s := range p.Push.Value {
			subs[i] = user.PushSubscription(s)
		}
		c.Push = &subs
	}
	return c, wishes(&c, p.OptOuts, p.QuietHours)
}

// wishes adds opt-outs and quiet hours, which users and the shop both set.
func wishes(c *user.Change, optOuts pipeline.Optional[[]string], quiet pipeline.Optional[QuietHours]) error {
	e := &fault.Fields{}
	if optOuts.Set {
		c.OptOuts = new(uint8)
		for i, name := range optOuts.Value {
			channel, err := delivery.ParseChannel(name)
			if err != nil {
				e.Add(fmt.Sprintf("opt_outs[%d]", i), "rule.channel_name", "%s", err.Error())
				continue
			}
			*c.OptOuts |= channel.Bit()
		}
	}
	if quiet.Set {
		c.Quiet = &user.QuietHours{}
		span, ok := user.ParseQuietHours(quiet.Value.From, quiet.Value.To)
		switch {
		case quiet.Null:
		case !ok:
			e.Add("quiet_hours", "rule.quiet_hours", "from and to must be times of day such as 22:00")
		case span.From == span.To:
			e.Add("quiet_hours", "rule.quiet_same", "from and to must differ; null removes the quiet hours")
		default:
			c.Quiet = &span
		}
	}
	return e.Err()
}

func preferencesJSON(u user.User) Preferences {
	p := Preferences{Email: u.Email, Phone: u.Phone, Push: make([]PushSubscription, len(u.Push)), OptOuts: []string{},
		Locale: u.Locale, Timezone: u.Timezone}
	if !u.PhoneVerifiedAt.IsZero() {
		p.VerifiedAt = new(u.PhoneVerifiedAt.UTC().Truncate(time.Second))
	}
	for i, s := range u.Push {
		p.Push[i] = PushSubscription(s)
	}
	for _, c := range delivery.AllChannels() {
		if u.OptOuts&c.Bit() != 0 {
			p.OptOuts = append(p.OptOuts, c.String())
		}
	}
	if u.Quiet.From != u.Quiet.To {
		from, to := u.Quiet.Clock()
		p.QuietHours = &QuietHours{from, to}
	}
	return p
}
