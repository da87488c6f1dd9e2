package coupons

import (
	"context"
	"fmt"

	"dropbell/domain/redeemcode"
	"dropbell/domain/template"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// url is where the codes of the page are.
func (p Codes) url() string {
	if p.Template == nil {
		return "/codes"
	}
	return parts.CodesURL(p.Template.ID)
}

// pageURL returns the address of the shown page.
func (p Codes) pageURL() string {
	if p.Before == "" {
		return p.url()
	}
	return fmt.Sprintf("%s?before=%s", p.url(), p.Before)
}

// listURL returns the file of all lists of a kind, or of the lists of one template.
func listURL(path string, of *template.Template) string {
	if of == nil {
		return path
	}
	return fmt.Sprintf("%s?template=%d", path, of.ID)
}

func exportURL(b redeemcode.Batch) string {
	return fmt.Sprintf("/templates/%d/codes.csv?batch=%d", b.TemplateID, b.ID)
}

func revokeURL(b redeemcode.Batch) string {
	return fmt.Sprintf("/templates/%d/codes/%d/revoke", b.TemplateID, b.ID)
}

// running reports whether a batch on the page is still being generated.
func (p Codes) running() bool {
	for _, b := range p.List {
		if generating(b) {
			return true
		}
	}
	return false
}

func generating(b redeemcode.Batch) bool { return b.State == redeemcode.Generating && !b.Stopped() }

// codesState is the displayed state of a batch.
func codesState(b redeemcode.Batch) string {
	if b.Stopped() {
		return "stopped"
	}
	return string(b.State)
}

func codesTone(b redeemcode.Batch) ui.Tone {
	switch {
	case b.State == redeemcode.Revoked, b.Stopped():
		return ui.Bad
	case b.State == redeemcode.Generating:
		return ui.Info
	}
	return ui.Good
}

// codesPieces are the generated part of a batch, and afterwards its used part.
func codesPieces(b redeemcode.Batch) []parts.Piece {
	switch b.State {
	case redeemcode.Generating:
		return []parts.Piece{{Class: "bar-inflight", N: b.Generated}}
	case redeemcode.Revoked:
		return []parts.Piece{{Class: "bar-sent", N: b.Used}, {Class: "bar-dead", N: b.Count - b.Used}}
	}
	return []parts.Piece{{Class: "bar-sent", N: b.Used}}
}

// codesText describes codesPieces in words.
func codesText(ctx context.Context, b redeemcode.Batch) string {
	switch b.State {
	case redeemcode.Generating:
		return ui.T(ctx, "codes.generated", b.Generated, b.Count)
	case redeemcode.Revoked:
		return ui.T(ctx, "codes.worthless", b.Used, b.Count-b.Used)
	}
	return ui.T(ctx, "codes.used", b.Used, b.Count)
}

func verdictTone(f redeemcode.Finding) ui.Tone {
	switch f.Verdict {
	case redeemcode.Good:
		return ui.Good
	case redeemcode.Spent, redeemcode.NotReadyYet, redeemcode.Elsewhere, redeemcode.Unpublished, redeemcode.NotYet, redeemcode.Halted, redeemcode.GoneAll:
		return ui.Warn
	}
	return ui.Bad
}
