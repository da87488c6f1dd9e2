package drops

import (
	"dropbell/domain/template"
	"dropbell/web/api/pipeline"
)

// NoticeWish sets when owners get a notice of the expiry of their coupon.
type NoticeWish struct {
	NotifyDays     []int    `json:"notify_days,omitempty" maxItems:"31" nullable:"false" doc:"Days before the expiry of a coupon on which its owner gets a notice; 0 = its last day." example:"[3,1]"`
	NotifyChannels []string `json:"notify_channels,omitempty" maxItems:"5" nullable:"false" doc:"Over which channels; the app's inbox if none is named." example:"[\"app\"]"`
}

func (w NoticeWish) into(s template.Spec) template.Spec {
	return s.WithNotices(template.NoticeDaysOf(w.NotifyDays...), template.ParseChannels(w.NotifyChannels...))
}

// NoticePatch is a change of [NoticeWish]: absent fields stay as they are.
type NoticePatch struct {
	NotifyDays     pipeline.Optional[[]int]    `json:"notify_days,omitempty" doc:"null or [] = no notices; concerns coupons issued from then on."`
	NotifyChannels pipeline.Optional[[]string] `json:"notify_channels,omitempty"`
}

func (p NoticePatch) apply(s template.Spec) template.Spec {
	days, over := s.NotifyDays, s.NotifyOver
	if p.NotifyDays.Set {
		days = template.NoticeDaysOf(p.NotifyDays.Value...)
	}
	if p.NotifyChannels.Set {
		over = template.ParseChannels(p.NotifyChannels.Value...)
	}
	return s.WithNotices(days, over)
}

func noticesJSON(s template.Spec) NoticeWish {
	if s.NotifyDays == 0 {
		return NoticeWish{}
	}
	return NoticeWish{s.NotifyDays.List(), template.ChannelNames(s.NotifyOver)}
}
