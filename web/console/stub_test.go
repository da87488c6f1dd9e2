package console

import (
	"context"

	"dropbell/domain/template"
	"dropbell/views/i18n"
	"dropbell/views/pages"
)

type deck struct {
	page pages.Cockpit
	past []int
}

func (d *deck) patch(string, *i18n.Locale) []byte { return nil }

func (d *deck) in(*i18n.Locale) map[string]string { return nil }

func lookAt(ctx context.Context, g *rig, id int64, before *deck) (*deck, error) { return nil, nil }

const pastFaces = 30

func valuesOf(template.Template) map[string]string { return nil }
