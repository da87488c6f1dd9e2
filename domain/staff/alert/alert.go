// Package alert notifies staff of conditions that need their attention: in the
// console, and by messages to chat groups and mail addresses.
package alert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Kind is the kind of condition that an alert is about.
type Kind string

// The kinds.
const (
	Channel     Kind = "channel"      // a channel is failing: its circuit is open
	DeadLetters Kind = "dead_letters" // messages that will not be tried again
	Late        Kind = "late"         // reminders that should be out by now
	Balance     Kind = "balance"      // a balance sheet that does not add up
	SoldOut     Kind = "sold_out"
	Approval    Kind = "approval" // a campaign awaits consent
	Job         Kind = "job"      // an import or another job has ended
	Endpoint    Kind = "endpoint" // a webhook endpoint was disabled by its failures
	Budget      Kind = "budget"   // 80 % of a budget is used, or all of it
	Waitlist    Kind = "waitlist" // stock is kept for users who wait, and does not move
	Flight      Kind = "flight"   // the flight check of a drop that opens soon has red points
	Series      Kind = "series"   // a drop of a series could not be created, changed or published
	Test        Kind = "test"     // asked for by a member, to one destination
)

// DetailBudget is the detail of a [Channel] whose budget of the day is used up.
const DetailBudget = "budget"

// DetailWarmUp is the detail of a [Channel] that has used up its mails of the day by the
// warm-up plan.
const DetailWarmUp = "warm_up"

// DetailProvider is the detail of a [Channel] one of whose push providers is failing, which
// delays only the devices of this provider's app. The name is the provider's.
const DetailProvider = "provider"

// DetailDraw is the detail of a [SoldOut] whose coupons were given by a draw.
const DetailDraw = "draw"

// DetailUsedUp is the detail of a [Budget] that is used up.
const DetailUsedUp = "used_up"

// DetailDropBudget is the detail of a [Channel] whose budget of a drop is used up.
const DetailDropBudget = "drop_budget"

// Kinds returns the kinds that staff choose from.
func Kinds() []Kind {
	return []Kind{Channel, Late, DeadLetters, Balance, SoldOut, Approval, Job, Endpoint, Budget, Waitlist, Flight, Series}
}

// A Condition is something that needs attention for as long as it lasts.
type Condition struct {
	Kind   Kind
	Object string // the id of its subject, unique within the kind
	Shop   int64  // 0 = concerns all shops
	// Template is the drop (0 = none), Member the only member concerned (0 = all).
	Template, Member int64
	Name             string // of the drop, the campaign or the job; the channel's key
	// Count is how many are affected. A greater one is worth another message.
	Count  int64
	Detail string
	Path   string // of the page of the console about it
}

// Key names the condition.
func (c Condition) Key() string { return string(c.Kind) + ":" + c.Object }

// An Alert is a condition that staff are told about.
type Alert struct {
	ID int64
	Condition
	// Repeated is how often the condition occurred again, without a message of its
	// own, since its last alert.
	Repeated int64
	RaisedAt time.Time
	EndedAt  *time.Time // nil while it lasts
	Read     bool
}

// Text describes the condition in one line, in a language.
func (a Alert) Text(tag string) string {
	zh := strings.HasPrefix(tag, "zh")
	pick := func(en, chinese string) string {
		if zh {
			return chinese
		}
		return en
	}
	text := ""
	switch a.Kind {
	case Channel:
		if a.Detail == DetailDropBudget {
			text = pick(fmt.Sprintf("“%s”: the budget of SMS for this drop is used up; further text messages about it are skipped.", a.Name), fmt.Sprintf("「%s」：本抢券活动的短信额度已用完，之后的短信都会跳过。", a.Name))
			break
		}
		if a.Detail == DetailProvider {
			text = pick(fmt.Sprintf("The push provider “%s” is failing; messages to the devices of its app wait until it answers again.", a.Name), fmt.Sprintf("推送服务商「%s」发送失败，发往其 App 或小程序的消息等待其恢复。", a.Name))
			break
		}
		name := channelName(a.Name, zh)
		switch a.Detail {
		case DetailWarmUp:
			text = pick(name+": the mails that the warm-up plan allows for today are sent; others wait until tomorrow (UTC) if they may.", name+"：预热计划允许的今日邮件已发完，其余可延后的邮件等到明天（UTC）。")
		case DetailBudget:
			text = pick(name+": the budget of today is used up; further messages are skipped until tomorrow (UTC).", name+"：今日额度已用完，明天（UTC）之前的消息都会跳过。")
		default:
			text = pick(name+" is failing; messages wait until the provider answers again.", name+"发送失败，消息等待服务商恢复。")
		}
	case DeadLetters:
		text = pick(fmt.Sprintf("“%s”: %s could not be delivered. Replay or discard what failed.", a.Name, many(a.Count, "message")), fmt.Sprintf("「%s」：%s 条消息发送失败，请重发或丢弃。", a.Name, grouped(a.Count)))
	case Late:
		text = pick(fmt.Sprintf("“%s”: %s overdue.", a.Name, many(a.Count, "reminder")), fmt.Sprintf("「%s」：%s 条提醒延迟。", a.Name, grouped(a.Count)))
	case Balance:
		text = pick(fmt.Sprintf("“%s”: the balance sheet is off by %s.", a.Name, grouped(a.Count)), fmt.Sprintf("「%s」：对账相差 %s。", a.Name, grouped(a.Count)))
	case SoldOut:
		if a.Detail == DetailDraw {
			text = pick(fmt.Sprintf("“%s”: %s drawn, and all coupons are given.", a.Name, many(a.Count, "winner")), fmt.Sprintf("「%s」：已抽出 %s 位中签者，优惠券全部发放。", a.Name, grouped(a.Count)))
			break
		}
		text = pick(fmt.Sprintf("“%s” is sold out: %s.", a.Name, many(a.Count, "coupon")), fmt.Sprintf("「%s」已抢光，共 %s 张券。", a.Name, grouped(a.Count)))
	case Approval:
		text = pick(fmt.Sprintf("The campaign “%s” awaits approval.", a.Name), fmt.Sprintf("促销活动「%s」等待批准。", a.Name))
	case Job:
		if a.Detail == "failed" {
			text = pick(fmt.Sprintf("The job “%s” has failed.", a.Name), fmt.Sprintf("任务「%s」失败。", a.Name))
		} else {
			text = pick(fmt.Sprintf("The job “%s” has finished.", a.Name), fmt.Sprintf("任务「%s」已完成。", a.Name))
		}
		if a.Count > 0 {
			text += pick(fmt.Sprintf(" %s failed.", many(a.Count, "row")), fmt.Sprintf("%s 行失败。", grouped(a.Count)))
		}
	case Endpoint:
		if a.Detail == "gone" {
			text = pick(fmt.Sprintf("The webhook endpoint at %s was disabled: it answered that it is gone.", a.Name), fmt.Sprintf("%s 的回调端点已停用：它答复已不存在。", a.Name))
		} else {
			text = pick(fmt.Sprintf("The webhook endpoint at %s was disabled: every attempt failed for five days.", a.Name), fmt.Sprintf("%s 的回调端点已停用：连续五天每次尝试都失败。", a.Name))
		}
	case Budget:
		if a.Detail == DetailUsedUp {
			text = pick(fmt.Sprintf("“%s”: the budget is used up; no further coupons are given.", a.Name), fmt.Sprintf("「%s」：预算已用完，不再发券。", a.Name))
		} else {
			text = pick(fmt.Sprintf("“%s”: %d %% of the budget is used.", a.Name, a.Count), fmt.Sprintf("「%s」：预算已使用 %d%%。", a.Name, a.Count))
		}
	case Waitlist:
		text = pick(fmt.Sprintf("“%s”: %s kept for waiting customers for more than a minute. Check that a worker with the role house runs.", a.Name, many(a.Count, "coupon")),
			fmt.Sprintf("「%s」：%s 张为候补保留的优惠券超过一分钟未发放，请检查 house 角色的 worker 是否运行。", a.Name, grouped(a.Count)))
	case Flight:
		text = pick(fmt.Sprintf("“%s”: the flight check has %s. Look at what to do before the opening.", a.Name, many(a.Count, "red point")), fmt.Sprintf("「%s」：起飞检查有 %s 项红色，请在抢券开始前处理。", a.Name, grouped(a.Count)))
	case Series:
		text = pick(fmt.Sprintf("Series “%s”: the drop of %s needs you; its page says why.", a.Name, a.Detail), fmt.Sprintf("系列「%s」：%s 的抢券活动需要处理，原因见其页面。", a.Name, a.Detail))
	case Test:
		text = pick("This is a test: notifications of Dropbell arrive here.", "这是一条测试消息：Dropbell 的通知会发到这里。")
	}
	if a.Repeated > 0 {
		text += pick(fmt.Sprintf(" (repeated %s since the last message)", many(a.Repeated, "time")), fmt.Sprintf("（自上次消息后又发生 %s 次）", grouped(a.Repeated)))
	}
	return text
}

// grouped writes n with separators of thousands, which both languages write alike.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// many is n with the English noun, in the plural unless n is 1.
func many(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return grouped(n) + " " + noun
}

func channelName(key string, zh bool) string {
	names := map[string][2]string{"app": {"The app's inbox", "应用内消息"}, "email": {"E-mail", "邮件"}, "sms": {"SMS", "短信"}, "webpush": {"Push", "推送"}, "webhook": {"The webhook", "回调"}}
	n, ok := names[key]
	switch {
	case !ok:
		return key
	case zh:
		return n[1]
	}
	return n[0]
}

// Form is the shape in which a destination takes messages.
type Form string

// The forms.
const (
	Feishu Form = "feishu"
	WeCom  Form = "wecom"
	Slack  Form = "slack"
	// Email: the destination is a mail address.
	Email Form = "email"
)

// Forms returns every form.
func Forms() []Form { return []Form{Email, Feishu, WeCom, Slack} }

// A Destination is a chat group or a mail address that alerts are sent to.
type Destination struct {
	ID   int64
	Shop int64 // 0 = alerts of all shops, and of none
	Form Form
	Name string
	// URL is the address to which messages are posted, or a mail address. A posting
	// address contains the key of the group, so pages, logs and errors show only its
	// Hint.
	URL string
	// Secret signs messages to Feishu; "" = they are not signed.
	Secret    string
	Language  string
	Kinds     []Kind
	CreatedBy string
	CreatedAt time.Time
}

// SealPurpose is the purpose for which the keys that seal addresses and secrets are
// derived.
const SealPurpose = "dropbell alert destinations"

// Hint is the part of the address that may be shown: its host and its last four
// characters, or the beginning and the domain of a mail address.
func (d Destination) Hint() string {
	if d.URL == "" { // removed, or sealed with a key that is not there
		return ""
	}
	if d.Form == Email {
		local, domain, _ := strings.Cut(d.URL, "@")
		first, _ := utf8.DecodeRuneInString(local)
		return string(first) + "…@" + domain
	}
	_, rest, _ := strings.Cut(d.URL, "://")
	host, path, _ := strings.Cut(rest, "/")
	if len(path) < 8 {
		return host
	}
	return host + "/…" + path[len(path)-4:]
}

// Wants reports whether the destination is told of the condition.
func (d Destination) Wants(c Condition) bool {
	return c.Member == 0 && (d.Shop == 0 || d.Shop == c.Shop) && slices.Contains(d.Kinds, c.Kind)
}

// A Delivery is one alert on its way to one destination.
type Delivery struct {
	ID          int64
	Alert       Alert
	Destination Destination
	// Lease identifies the caller that holds the delivery.
	Lease string
	// Attempts were made before this one.
	Attempts   int
	State      State
	Detail     string // the last answer, without addresses
	CreatedAt  time.Time
	DeadlineAt time.Time
	EndedAt    *time.Time
}

// State says where a delivery is.
type State string

// The states.
const (
	Waiting State = "waiting"
	Sent    State = "sent"
	Failed  State = "failed"  // the destination refuses it for good
	Dropped State = "dropped" // its deadline passed
)

// An Outcome is the result of one attempt.
type Outcome struct {
	State  State // Waiting = to be tried again
	Detail string
	After  time.Duration // the destination asks to wait so long
}

// Backoff returns how long to wait after this number of attempts, at least the time
// that the destination asked for.
func Backoff(attempts int, asked time.Duration) time.Duration {
	return max(asked, min(firstPause<<min(max(attempts-1, 0), 10), lastPause))
}

const (
	firstPause = 5 * time.Second
	lastPause  = 5 * time.Minute
	// Quiet is the time within which a condition that ends and comes again, or
	// grows, gets no further message.
	Quiet = 10 * time.Minute
	// Deadline is how long a message is tried; later it would be no news.
	Deadline = time.Hour
)
