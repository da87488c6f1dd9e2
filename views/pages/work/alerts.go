package work

import (
	"context"
	"slices"
	"strings"

	"dropbell/domain/staff/alert"
	"dropbell/views/ui"
)

func kindOptions(ctx context.Context) (list []ui.Option) {
	for _, k := range alert.Kinds() {
		list = append(list, ui.Option{Value: string(k), Label: ui.T(ctx, "alerts.kind."+string(k))})
	}
	return list
}

func formOptions(ctx context.Context) (list []ui.Option) {
	for _, f := range alert.Forms() {
		list = append(list, ui.Option{Value: string(f), Label: ui.T(ctx, "alerts.form."+string(f))})
	}
	return list
}

func kindsText(ctx context.Context, kinds []alert.Kind) string {
	if len(kinds) == len(alert.Kinds()) {
		return ui.T(ctx, "alerts.all")
	}
	var list []string
	for _, k := range alert.Kinds() {
		if slices.Contains(kinds, k) {
			list = append(list, ui.T(ctx, "alerts.kind."+string(k)))
		}
	}
	return strings.Join(list, ui.T(ctx, "ui.list_join"))
}

func (p AlertSettings) wanted() (list []string) {
	for _, k := range p.Wanted {
		list = append(list, string(k))
	}
	return list
}

// shop names the shop of a group.
func (p AlertSettings) shop(ctx context.Context, number int64) string {
	if number == 0 {
		return ui.T(ctx, "alerts.all_shops")
	}
	return p.Names[number]
}

func alertDeliveryTone(s alert.State) ui.Tone {
	return map[alert.State]ui.Tone{alert.Sent: ui.Good, alert.Waiting: ui.Info, alert.Failed: ui.Bad, alert.Dropped: ui.Warn}[s]
}
