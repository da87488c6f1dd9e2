// Passkeys: a form with data-passkey calls the browser's authenticators, puts
// their answer into a field and is submitted. Without this file there is no button.
(() => {
  "use strict";
  const form = document.querySelector("form[data-passkey]");
  const box = form?.querySelector("[data-passkey-box]");
  if (!box) return;
  if (!window.PublicKeyCredential) { box.hidden = true; return; }
  const button = box.querySelector("[data-passkey-ask]");
  const failed = box.querySelector("[data-passkey-failed]");

  // WebAuthn uses bytes; JSON has them as base64url.
  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
  const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const keys = (list) => (list ?? []).map((k) => ({ ...k, id: bytes(k.id) }));

  function ask() {
    const o = JSON.parse(form.dataset.passkeyOptions);
    o.challenge = bytes(o.challenge);
    if (form.dataset.passkey === "create") {
      o.user.id = bytes(o.user.id);
      o.excludeCredentials = keys(o.excludeCredentials);
      return navigator.credentials.create({ publicKey: o });
    }
    o.allowCredentials = keys(o.allowCredentials);
    return navigator.credentials.get({ publicKey: o });
  }

  function answer(c) {
    const r = c.response, response = { clientDataJSON: text(r.clientDataJSON) };
    if (r.attestationObject) {
      response.attestationObject = text(r.attestationObject);
      response.transports = r.getTransports?.() ?? [];
    } else {
      response.authenticatorData = text(r.authenticatorData);
      response.signature = text(r.signature);
      if (r.userHandle?.byteLength) response.userHandle = text(r.userHandle);
    }
    return JSON.stringify({ id: c.id, rawId: text(c.rawId), type: c.type, response,
      authenticatorAttachment: c.authenticatorAttachment ?? undefined, clientExtensionResults: c.getClientExtensionResults() });
  }

  button.addEventListener("click", async () => {
    failed.hidden = true;
    button.disabled = true;
    try {
      const field = document.createElement("input");
      field.type = "hidden";
      field.name = form.dataset.passkeyField;
      field.value = answer(await ask());
      form.append(field);
      form.submit();
    } catch {
      failed.hidden = false; // cancelled, timed out, or none that fits
      button.disabled = false;
    }
  });
})();
